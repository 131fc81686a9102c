"""What CI does: plan the jobs of a push, hand out their matrix, collect their results, publish the records."""
