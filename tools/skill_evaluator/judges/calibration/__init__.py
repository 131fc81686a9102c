"""Compare judges with human labels and with known defects: agreement, biases, detection and error rates."""
