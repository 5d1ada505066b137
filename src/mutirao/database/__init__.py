"""The only room that speaks SQL: the embedded server, connections, migrations and the calls into the engine."""
