"""What CI does: plan, matrix, collect, publish."""
