module ringhold.dev/examples/arena

go 1.19

require (
	ringhold.dev/clients/go v0.0.0
	ringhold.dev/hosts/go v0.0.0
)

replace (
	ringhold.dev/clients/go => ../../clients/go
	ringhold.dev/hosts/go => ../../hosts/go
)
