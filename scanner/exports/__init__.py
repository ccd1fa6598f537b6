"""What a scan found, in the formats of other tools: a module each, all of them over one `state.State`."""
