//! Resolving names to slots.

use std::collections::HashMap;
use std::ops::Range;

use crate::template::syntax::jinja::ast::{Else, Statement, StatementKind, Target, TargetKind};
use crate::template::tree::{Expr, ExprKind, Local, Place};

/// All frames that are being compiled: the template's own, then those of nested macros.
pub(super) struct Frames {
    frames: Vec<Frame>,
}

#[derive(Default)]
struct Frame {
    scopes: Vec<Scope>,
    next_slot: usize,
    /// The slots of the enclosing macro's frame that this one reads: the slot there, and the slot here.
    captures: Vec<(usize, usize)>,
    /// The same slots, for lookups.
    captured: HashMap<usize, usize>,
}

#[derive(Default)]
struct Scope {
    names: HashMap<String, Binding>,
    /// Whether `loop` refers to this scope's loop. True in the body of a `for`.
    has_loop: bool,
    first_slot: usize,
}

#[derive(Clone, Copy)]
struct Binding {
    slot: usize,
    /// Whether the slot is set whenever it can be read.
    always_set: bool,
}

/// One possible meaning of a name. Candidates are tried in order.
struct Candidate {
    outer: bool,
    slot: usize,
    always_set: bool,
}

impl Frames {
    pub(super) fn new() -> Self {
        let mut frames = Self { frames: Vec::new() };
        frames.push_frame();
        frames
    }

    pub(super) fn push_frame(&mut self) {
        self.frames.push(Frame { scopes: vec![Scope::default()], next_slot: 0, ..Frame::default() });
    }

    /// Ends a frame. Returns its size and what it captures from the enclosing frame.
    pub(super) fn pop_frame(&mut self) -> (usize, Vec<(usize, usize)>) {
        let frame = self.frames.pop();
        frame.map_or_else(Default::default, |frame| (frame.next_slot, frame.captures))
    }

    /// Returns the size of the template's own frame.
    pub(super) fn root_size(&self) -> usize {
        self.frames[0].next_slot
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the template's own frame is never popped while it is compiled")
    }

    fn scope(&mut self) -> &mut Scope {
        self.frame().scopes.last_mut().expect("a frame has at least one scope")
    }

    /// Starts a scope.
    pub(super) fn push_scope(&mut self) {
        let first_slot = self.frame().next_slot;
        self.frame().scopes.push(Scope { first_slot, ..Scope::default() });
    }

    /// Ends a scope. Returns all slots that it and its nested scopes used.
    pub(super) fn pop_scope(&mut self) -> Range<usize> {
        let end = self.frame().next_slot;
        let scope = self.frame().scopes.pop();
        scope.map_or(0..0, |scope| scope.first_slot..end)
    }

    /// Returns the slot of a name in the current scope, and allocates one if it has none.
    pub(super) fn declare(&mut self, name: &str, always_set: bool) -> usize {
        if let Some(binding) = self.scope().names.get_mut(name) {
            binding.always_set |= always_set;
            return binding.slot;
        }
        let slot = self.new_slot();
        self.scope().names.insert(name.to_owned(), Binding { slot, always_set });
        slot
    }

    /// Allocates the next slot for a parameter. If two parameters have the same name, the last one wins.
    pub(super) fn declare_param(&mut self, name: &str) {
        let slot = self.new_slot();
        self.scope().names.insert(name.to_owned(), Binding { slot, always_set: true });
    }

    pub(super) fn new_slot(&mut self) -> usize {
        let frame = self.frame();
        frame.next_slot += 1;
        frame.next_slot - 1
    }

    pub(super) fn next_slot(&mut self) -> usize {
        self.frame().next_slot
    }

    /// Sets whether `loop` refers to the current scope's loop from here on.
    pub(super) fn set_loop(&mut self, has_loop: bool) {
        self.scope().has_loop = has_loop;
    }

    /// Returns the slot of the current scope's `loop`, if its body mentioned it.
    pub(super) fn loop_slot(&mut self) -> Option<usize> {
        self.scope().names.get("loop").map(|binding| binding.slot)
    }

    /// Returns whether a name can refer to anything other than an input.
    pub(super) fn knows(&mut self, name: &str) -> bool {
        !self.candidates(self.frames.len() - 1, name).is_empty()
    }

    /// Returns the expression that reads a name. `input` creates the expression that reads it from the inputs.
    pub(super) fn read(&mut self, name: &str, place: Place, input: impl FnOnce() -> ExprKind) -> ExprKind {
        let candidates = self.candidates(self.frames.len() - 1, name);
        let last_is_sure = candidates.last().is_some_and(|candidate| candidate.always_set);
        let mut kind = if last_is_sure { None } else { Some(input()) };
        for candidate in candidates.into_iter().rev() {
            let otherwise = if candidate.always_set { None } else { kind.take() };
            let otherwise = otherwise.map(|kind| Box::new(Expr::new(kind, place)));
            let local = Local { slot: candidate.slot, name: name.into(), otherwise };
            kind = Some(if candidate.outer { ExprKind::Outer(local) } else { ExprKind::Local(local) });
        }
        kind.expect("there is an input or a candidate")
    }

    /// Returns all possible meanings of a name in a frame, best first, up to the first one that is always set.
    fn candidates(&mut self, depth: usize, name: &str) -> Vec<Candidate> {
        let mut found = Vec::new();
        for index in (0..self.frames[depth].scopes.len()).rev() {
            self.declare_loop(depth, index, name);
            if let Some(&Binding { slot, always_set }) = self.frames[depth].scopes[index].names.get(name) {
                found.push(Candidate { outer: false, slot, always_set });
                if always_set {
                    return found;
                }
            }
        }
        if depth == 0 {
            return found;
        }
        for outer in self.candidates(depth - 1, name) {
            if depth == 1 || outer.outer {
                found.push(Candidate { outer: true, ..outer });
            } else {
                let slot = self.capture(depth, outer.slot);
                found.push(Candidate { outer: false, slot, always_set: outer.always_set });
            }
        }
        found
    }

    /// Allocates a slot for `loop` when the body of a loop mentions it for the first time.
    fn declare_loop(&mut self, depth: usize, scope: usize, name: &str) {
        let frame = &mut self.frames[depth];
        if name == "loop" && frame.scopes[scope].has_loop && !frame.scopes[scope].names.contains_key(name) {
            let binding = Binding { slot: frame.next_slot, always_set: true };
            frame.next_slot += 1;
            frame.scopes[scope].names.insert(name.to_owned(), binding);
        }
    }

    /// Returns the slot that a slot of the enclosing macro is copied to.
    fn capture(&mut self, depth: usize, outer_slot: usize) -> usize {
        let frame = &mut self.frames[depth];
        if let Some(slot) = frame.captured.get(&outer_slot) {
            return *slot;
        }
        let slot = frame.next_slot;
        frame.next_slot += 1;
        frame.captures.push((outer_slot, slot));
        frame.captured.insert(outer_slot, slot);
        slot
    }
}

/// Collects the names that statements assign in their own scope.
pub(super) fn assigned_names<'s>(statements: &[Statement], source: &'s str, names: &mut Vec<&'s str>) {
    for statement in statements {
        match &statement.kind {
            StatementKind::Set(node) => target_names(&node.target, source, names),
            StatementKind::SetBlock(node) => {
                target_names(&node.target, source, names);
                assigned_names(&node.body.statements, source, names);
            }
            StatementKind::Macro(node) => names.push(&source[node.name.range()]),
            StatementKind::If(node) => {
                for branch in &node.branches {
                    assigned_names(&branch.statements, source, names);
                }
                else_names(node.otherwise.as_ref(), source, names);
            }
            StatementKind::Filter(node) => assigned_names(&node.body.statements, source, names),
            StatementKind::AutoEscape(node) => assigned_names(&node.body.statements, source, names),
            StatementKind::For(node) => else_names(node.otherwise.as_ref(), source, names),
            _ => {}
        }
    }
}

fn else_names<'s>(branch: Option<&Else>, source: &'s str, names: &mut Vec<&'s str>) {
    if let Some(branch) = branch {
        assigned_names(&branch.statements, source, names);
    }
}

pub(super) fn target_names<'s>(target: &Target, source: &'s str, names: &mut Vec<&'s str>) {
    match &target.kind {
        TargetKind::Name => names.push(&source[target.span.range()]),
        TargetKind::Tuple(items) => items.iter().for_each(|item| target_names(item, source, names)),
        _ => {}
    }
}
