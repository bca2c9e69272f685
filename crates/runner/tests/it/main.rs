//! What `cynode-sba` promises, tried on the real binary.

#[cfg(test)]
mod commands;
#[cfg(test)]
mod nothing_is_left_running;
#[cfg(test)]
mod result_and_exit_code;
#[cfg(test)]
mod scene;
