"""Ask models: prompts into requests, the schedule of the calls, the engine, the budget and the journal."""
