"""One object a process that answers: owns the knowledge, its thread and its refresh."""
