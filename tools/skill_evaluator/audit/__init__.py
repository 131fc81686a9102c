"""The stability audit: how much a model moves when the prompt around the task changes in ordinary ways."""
