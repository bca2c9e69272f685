//! Live progress of a job on a terminal: a line for each step that ended, and one that moves for the step at work.
//!
//! The shown text comes from inside the sandbox, and is escaped.

use crate::error::CliError;
use crate::output::{self, Untrusted};
use anstyle::{AnsiColor, Style};
use belljar_contract::event::{Event, LogLine};
use belljar_contract::job::Job;
use belljar_contract::result::StepStatus;
use belljar_sandbox::run::JobWatch;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Shows how a job goes on.
pub(crate) struct Progress {
    steps: usize,
    is_terminal: bool,
    quiet: bool,
    at_work: Option<RunningStep>,
    frame: usize,
    canceled: Arc<AtomicBool>,
}

struct RunningStep {
    name: String,
    kind: &'static str,
    since: Instant,
    last_line: String,
}

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

// === impl Progress ===

impl Progress {
    /// Progress of `job`. Also takes interrupts over: the first one cancels the job instead of ending belljar.
    pub(crate) fn new(job: &Job, quiet: bool) -> Result<Self, CliError> {
        let canceled = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            signal_hook::flag::register(signal, Arc::clone(&canceled)).map_err(|source| CliError::Watch {
                source: rustix::io::Errno::from_io_error(&source).unwrap_or(rustix::io::Errno::INVAL),
            })?;
        }
        Ok(Self {
            steps: job.steps.len(),
            is_terminal: std::io::stderr().is_terminal(),
            quiet,
            at_work: None,
            frame: 0,
            canceled,
        })
    }

    /// Leaves the terminal clean.
    pub(crate) fn finish(&mut self) {
        self.clear();
    }

    fn clear(&self) {
        if self.is_terminal && !self.quiet {
            output::redraw("");
        }
    }

    fn draw(&mut self) {
        let Some(at_work) = self.at_work.as_ref().filter(|_| self.is_terminal && !self.quiet) else { return };
        self.frame = (self.frame + 1) % FRAMES.len();
        let width =
            rustix::termios::tcgetwinsize(rustix::stdio::stderr()).map_or(80, |size| size.ws_col.max(20));
        let seconds = at_work.since.elapsed().as_secs_f32();
        let text = format!(
            "{} {}  {} {seconds:.1} s  {}",
            FRAMES[self.frame], at_work.name, at_work.kind, at_work.last_line
        );
        let text: String = text.chars().take(usize::from(width) - 1).collect();
        output::redraw(&text);
        let _ = std::io::stderr().flush();
    }

    fn step_ended(&mut self, index: usize, id: &str, status: StepStatus, duration: Duration) {
        self.clear();
        let kind = self.at_work.take().map_or("", |at_work| at_work.kind);
        if self.quiet {
            return;
        }
        let style = Style::new().bold().fg_color(Some(match status {
            StepStatus::Success => AnsiColor::Green.into(),
            StepStatus::Failure => AnsiColor::Red.into(),
        }));
        let mark = if status == StepStatus::Success { '✓' } else { '✗' };
        let width = self.steps.to_string().len();
        crate::output::errln!(
            "{style}{mark}{style:#} {:>width$}/{}  {kind:<18}  {:>9}  {}",
            index + 1,
            self.steps,
            crate::summary::duration(duration),
            harmless(id)
        );
    }
}

impl JobWatch for Progress {
    fn heard(&mut self, line: &LogLine) {
        match &line.event {
            Event::StepStarted { id, step_type, .. } => {
                self.at_work = Some(RunningStep {
                    name: harmless(id),
                    kind: step_type.as_str(),
                    since: Instant::now(),
                    last_line: String::new(),
                });
            }
            Event::StepProgress { last_line, .. } => {
                if let Some(at_work) = &mut self.at_work {
                    at_work.last_line = harmless(last_line);
                }
            }
            Event::StepFinished { index, id, status, duration_ms, .. } => {
                self.step_ended(*index, id, *status, Duration::from_millis(*duration_ms));
            }
            Event::Warning { message } if !self.quiet => {
                self.clear();
                crate::output::errln!("warning: {}", harmless(message));
            }
            _ => {}
        }
    }

    fn tick(&mut self) {
        self.draw();
    }

    fn is_to_stop(&self) -> Option<Duration> {
        self.canceled.load(Ordering::Relaxed).then_some(Duration::ZERO)
    }
}

/// The text on one line, with escapes in place of everything that a terminal acts on, that reorders text or that can't be seen.
pub(crate) fn harmless(text: &str) -> String {
    Untrusted(text).to_string()
}
