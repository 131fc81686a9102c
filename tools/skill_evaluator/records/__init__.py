"""What a run leaves behind: records, leaderboards, and the choice among them."""
