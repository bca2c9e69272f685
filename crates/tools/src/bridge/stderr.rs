//! What a server's program complains of: a little of it is logged, the rest is let go.

use tokio::io::{AsyncRead, AsyncReadExt};

/// So many lines of one start are logged.
const MOST_LINES: usize = 100;

/// As much of each.
const LONGEST_LINE: usize = 400;

/// Reads until there is no more, so that nobody waits for somebody to read.
pub(super) async fn log(server: String, mut errors: impl AsyncRead + Unpin) {
    let mut portion = vec![0; 8 << 10];
    let (mut line, mut left) = (Vec::new(), MOST_LINES);
    while let Ok(read @ 1..) = errors.read(&mut portion).await {
        for byte in &portion[..read] {
            match byte {
                b'\n' => tell(&server, &mut line, &mut left),
                _ if line.len() < LONGEST_LINE => line.push(*byte),
                _ => {}
            }
        }
    }
    tell(&server, &mut line, &mut left);
}

fn tell(server: &str, line: &mut Vec<u8>, left: &mut usize) {
    let text: String = String::from_utf8_lossy(line).chars().filter(|c| !c.is_control()).collect();
    line.clear();
    if text.is_empty() || *left == 0 {
        return;
    }
    *left -= 1;
    tracing::info!(server, text, is_last_told = *left == 0, "an MCP server's program says");
}
