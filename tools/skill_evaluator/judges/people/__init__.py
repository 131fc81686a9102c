"""What people are asked: a queue of items, their labels, what both are good for, and a local page to give them on."""
