module ringhold.dev/hosts/go

go 1.19
