"""From a push to records: what is evaluated and why, cut into jobs; their results collected and published."""
