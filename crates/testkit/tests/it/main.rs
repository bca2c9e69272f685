//! What tests are tested with: the scripted model server, LiteLLM, and real clients of both.

mod agents;
