"""What tests of providers and of the controller need: fakes, builders, the provider conformance suite. Public."""
