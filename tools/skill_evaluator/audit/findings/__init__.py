"""What an audit says: the results of every model and the cautions that go with them."""
