module ringhold.dev/examples/purse/go

go 1.19

require ringhold.dev/hosts/go v0.0.0

replace ringhold.dev/hosts/go => ../../../hosts/go
