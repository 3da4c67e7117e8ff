"""The table's lock: who may change the timeline now. What it guards is for the services to say."""
