//! Logs a part of the standard error of a server's program, and drops the rest.

use super::log_quota::LogQuota;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum number of bytes of a line that are logged.
const LONGEST_LINE: usize = 400;

/// Reads until the end, so that the program never blocks on writing.
pub(super) async fn log(server: String, mut errors: impl AsyncRead + Unpin, quota: Arc<LogQuota>) {
    let mut portion = vec![0; 8 << 10];
    let mut line = Vec::new();
    while let Ok(read @ 1..) = errors.read(&mut portion).await {
        for byte in &portion[..read] {
            match byte {
                b'\n' => tell(&server, &mut line, &quota),
                _ if line.len() < LONGEST_LINE => line.push(*byte),
                _ => {}
            }
        }
    }
    tell(&server, &mut line, &quota);
}

fn tell(server: &str, line: &mut Vec<u8>, quota: &LogQuota) {
    let text: String = String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).collect();
    line.clear();
    if text.is_empty() {
        return;
    }
    if let Some(is_last_told) = quota.take() {
        tracing::info!(server, text, is_last_told, "output of an MCP server's program");
    }
}
