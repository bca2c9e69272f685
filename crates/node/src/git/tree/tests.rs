//! Trees that the host makes of what an agent has left.
