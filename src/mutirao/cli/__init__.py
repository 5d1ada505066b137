"""The command `mutirao`: one file per command group. No SQL here, and no rule of the engine."""
