module ringhold.dev/clients/go

go 1.19
