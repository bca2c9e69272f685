//! Contestants that are measured repeatedly, in turns, with one figure per round.

/// The goal for a ratio.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

/// Measures each contestant in every round. Returns the figures of each, in the order of the rounds.
pub(crate) fn hold<T>(rounds: usize, contestants: usize, mut measure: impl FnMut(usize) -> T) -> Vec<Vec<T>> {
    let mut figures: Vec<Vec<T>> = (0..contestants).map(|_| Vec::with_capacity(rounds)).collect();
    for round in 0..rounds {
        for place in 0..contestants {
            // The order changes from round to round.
            let who = (place + round) % contestants;
            figures[who].push(measure(who));
        }
    }
    figures
}

pub(crate) fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = figures.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

/// Returns the median of each round's ratio: a slow round affects both.
pub(crate) fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs))
}

/// Prints a figure. Returns true if it meets the goal.
pub(crate) fn judge(what: &str, figure: f64, goal: Goal) -> bool {
    let (is_met, goal) = match goal {
        Goal::AtLeast(least) => (figure >= least, format!("at least {least}")),
        Goal::AtMost(most) => (figure <= most, format!("at most {most}")),
    };
    crate::history::note(figure, is_met);
    println!("\n{what} = **{figure:.2}** (goal: {goal}): {}", if is_met { "met" } else { "MISSED" });
    is_met
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contestants_each_run_once_per_round_in_rotating_order() {
        let mut order = Vec::new();
        let figures = hold(3, 3, |who| {
            order.push(who);
            who
        });
        assert_eq!(order, [0, 1, 2, 1, 2, 0, 2, 0, 1]);
        assert_eq!(figures, [[0; 3], [1; 3], [2; 3]]);
    }

    #[test]
    fn a_slow_round_for_both_changes_no_ratio() {
        assert_eq!(median([3.0, 1.0, 2.0, 10.0]), 2.5);
        assert_eq!(ratio(&[20.0, 2.0, 21.0], &[10.0, 1.0, 10.0]), 2.0);
        assert!(judge("as wanted", 2.0, Goal::AtLeast(2.0)) && !judge("too slow", 1.3, Goal::AtMost(1.2)));
    }
}
