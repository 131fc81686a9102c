"""A prompt library on disk, read once and checked: settings, components, contracts, scenarios, cases, versions."""
