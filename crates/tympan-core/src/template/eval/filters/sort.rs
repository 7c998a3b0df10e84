//! Sorting that cannot panic.
//!
//! The standard sorts may panic if the comparison is not a total order. Ours stops being one when the budget runs out
//! during a sort.

use std::cmp::Ordering;

/// Sorts stably: equal items keep their order.
pub(super) fn sort_by<T>(items: Vec<T>, compare: &mut dyn FnMut(&T, &T) -> Ordering) -> Vec<T> {
    if items.len() <= 1 {
        return items;
    }
    let mut left = items;
    let right = left.split_off(left.len() / 2);
    merge(sort_by(left, compare), sort_by(right, compare), compare)
}

fn merge<T>(left: Vec<T>, right: Vec<T>, compare: &mut dyn FnMut(&T, &T) -> Ordering) -> Vec<T> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let next = if compare(b, a).is_lt() { right.next() } else { left.next() };
        merged.extend(next);
    }
    merged.extend(left);
    merged.extend(right);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_stably_and_survives_nonsense() {
        let sorted = sort_by(vec![(2, 'a'), (1, 'b'), (2, 'c'), (1, 'd')], &mut |a, b| a.0.cmp(&b.0));
        assert_eq!(sorted, [(1, 'b'), (1, 'd'), (2, 'a'), (2, 'c')]);
        let mut flip = false;
        let nonsense = sort_by((0..100).collect(), &mut |_, _| {
            flip = !flip;
            if flip { Ordering::Less } else { Ordering::Greater }
        });
        assert_eq!(nonsense.len(), 100);
    }
}
