//! Data-flow analysis: which inputs a template reads, and how they reach its output, without rendering it.
//!
//! Values are not known here, so every branch counts. A name that the template sets, even on one branch only, is its
//! own from there on. If the template reads the name before that, it is an input.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::short;
use crate::template::tree::{
    Arg, Args, Block, CallExpr, Callee, Capture, Const, Expr, ExprKind, For, Literal, Local, MacroDef, NamedArg, Node,
    Place, Section, Target, Tree, With,
};
use crate::template::walk::each_part;
use crate::text::source::Span;

/// How an input contributes to output. Each way says more about the output than the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// Its text is part of the output.
    Text,
    /// Its text is part of the output after a filter has changed it.
    Filtered,
    /// It decides what is written: it is a condition, the list of a loop, or what a number or a boolean is computed
    /// from.
    Decides,
}

/// A step on the way of an input to the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What binds the value, such as `for d` or `macro quote`.
    pub name: String,
    /// The position of the value that is bound.
    pub span: Span,
}

/// A place where an input becomes output, or decides about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sink {
    /// The index of the input.
    pub input: usize,
    /// How it contributes.
    pub how: How,
    /// The position of the expression that is written or, for a decision, of the condition.
    pub span: Span,
    /// The steps that the input took, in order. Empty if it is used directly.
    pub path: Vec<Step>,
    /// For a decision, the notable lines of the author's that it decides about; see
    /// [`CompileOptions::notable`](super::CompileOptions::notable).
    pub lines: Vec<String>,
}

/// How a template uses its inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The inputs that it reads, and the first place where each is read.
    pub uses: BTreeMap<usize, Span>,
    /// The places where inputs become output, by position.
    pub sinks: Vec<Sink>,
    /// Whether a limit of the analysis was reached, so that some sinks may be missing. Templates that people write are
    /// far below the limits.
    pub is_partial: bool,
}

/// How an input reaches a value.
#[derive(Clone, Debug, PartialEq)]
struct Reach {
    how: How,
    path: Vec<Step>,
}

/// The inputs that contributed to a value. At most [`MAX_TAINT`], because the result is read by people.
type Taint = BTreeMap<usize, Reach>;

const MAX_TAINT: usize = 64;
const MAX_PATH: usize = 8;
/// The maximum number of notable lines that are recorded for a decision.
const MAX_LINES: usize = 16;
/// Namespaces and macros can carry text backwards, which takes several passes. Longer chains than this are not
/// followed.
const MAX_PASSES: usize = 4;

/// The maximum number of taint entries that are copied in total. Without it, a template that often reads a value with
/// many inputs would make the analysis slow. Above it, all uses are still found, but not all sinks.
const MAX_COPIES: usize = 400_000;

/// Filters whose results contain none of the text that they are applied to.
const MEASURES: [&str; 8] = ["length", "count", "wordcount", "int", "float", "round", "abs", "bool"];

/// Which sinks an analysis reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Those that matter to people: decisions only if they are about words of the author's.
    Notable,
    /// Every sink. What is computed from an input, such as its length, counts as its text after a filter.
    Every,
}

/// Follows the inputs through a template.
pub(crate) fn analyse(tree: &Tree, detail: Detail) -> Flow {
    let mut left = MAX_COPIES;
    let mut ever = vec![None; tree.frame_size];
    let mut attributes = BTreeMap::new();
    let mut flow = Flow::default();
    let mut is_partial = true;
    for _ in 0..MAX_PASSES {
        let before = (ever.clone(), attributes.clone());
        let frame = Frame { slots: vec![None; tree.frame_size], trail: Vec::new() };
        let mut pass = Pass {
            frames: vec![frame],
            ever: std::mem::take(&mut ever),
            attributes: std::mem::take(&mut attributes),
            outputs: Vec::new(),
            captured: Vec::new(),
            decisions: Vec::new(),
            uses: BTreeMap::new(),
            sinks: BTreeMap::new(),
            left,
            detail,
        };
        pass.block(&tree.body);
        left = pass.left;
        let is_full = pass.sinks_are_full();
        // A pass that ran out of copies knows less than the previous one.
        if left == 0 && !flow.uses.is_empty() {
            break;
        }
        flow = Flow { uses: pass.uses, sinks: pass.sinks.into_values().collect(), is_partial: false };
        (ever, attributes) = (pass.ever, pass.attributes);
        if before == (ever.clone(), attributes.clone()) {
            is_partial = left == 0 || is_full;
            break;
        }
    }
    flow.is_partial = is_partial;
    flow.sinks.sort_by_key(|sink| (sink.span.start, sink.input, sink.how));
    flow
}

/// The content of a slot: how it was bound, and the inputs that contributed to it.
#[derive(Debug, Clone, PartialEq)]
struct Slot {
    binding: &'static str,
    /// The position of the value.
    place: Place,
    taint: Taint,
    /// Whether only some branches set it, so that its name may still be that of an input.
    may_be_unset: bool,
}

#[derive(Debug, Default)]
struct Frame {
    slots: Vec<Option<Slot>>,
    /// The previous value of each assigned slot, so that a branch can be undone.
    trail: Vec<(usize, Option<Slot>)>,
}

impl Slot {
    /// Copies a slot, without its taint once the limit on copies has been reached.
    fn copied(&self, left: &mut usize) -> Self {
        Self {
            binding: self.binding,
            place: self.place,
            taint: copied(Some(&self.taint), left),
            may_be_unset: self.may_be_unset,
        }
    }
}

impl Frame {
    fn put(&mut self, slot: usize, value: Option<Slot>) {
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, None);
        }
        let before = std::mem::replace(&mut self.slots[slot], value);
        self.trail.push((slot, before));
    }

    fn get(&self, slot: usize) -> Option<&Slot> {
        self.slots.get(slot)?.as_ref()
    }

    /// Undoes all assignments since a mark, and returns the values that they had stored.
    fn undo(&mut self, mark: usize) -> Vec<(usize, Option<Slot>)> {
        let mut undone = Vec::new();
        while self.trail.len() > mark {
            let Some((slot, before)) = self.trail.pop() else { break };
            let after = std::mem::replace(&mut self.slots[slot], before);
            // The latest assignment comes first here, and it is the one that counts.
            undone.push((slot, after));
        }
        undone
    }
}

struct Pass {
    frames: Vec<Frame>,
    /// Everything that the slots of the template's own frame have ever held. A macro may run after a slot that it reads
    /// is set.
    ever: Vec<Option<Slot>>,
    /// Everything that attributes of namespaces have ever held, by the slot of the namespace.
    attributes: BTreeMap<usize, Taint>,
    /// The captured outputs that are being rendered, innermost last.
    outputs: Vec<Taint>,
    /// The captured texts whose filters are being analyzed.
    captured: Vec<Taint>,
    /// The conditions and loops around the current place, innermost last.
    decisions: Vec<Decision>,
    uses: BTreeMap<usize, Span>,
    /// By position and input. The last part keeps decisions apart from output at the same position.
    sinks: BTreeMap<(usize, usize, bool), Sink>,
    /// How many taint entries may still be copied.
    left: usize,
    detail: Detail,
}

/// A condition or a loop whose body is being analyzed.
struct Decision {
    place: Place,
    taint: Taint,
    /// Whether the body contains words of the author's.
    has_words: bool,
    lines: Vec<String>,
}

impl Pass {
    /// Returns whether so many inputs are read that a taint may not hold all of them.
    fn sinks_are_full(&self) -> bool {
        self.uses.len() > MAX_TAINT
    }

    fn is_every(&self) -> bool {
        self.detail == Detail::Every
    }

    /// Returns how an input contributes to a number or a boolean that is computed from it.
    fn computed(&self) -> How {
        if self.is_every() { How::Filtered } else { How::Decides }
    }

    fn block(&mut self, block: &Block) {
        for node in block {
            self.node(node);
        }
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Text(literal) => self.text(literal),
            Node::Break | Node::Continue => {}
            Node::Emit(expr) | Node::EmitWhole(expr) => {
                let taint = self.expr(expr);
                self.note_words(has_words(expr));
                self.emit(taint, extent(expr));
            }
            Node::If(branches, or_else) => self.branches(branches, or_else),
            Node::For(node) => self.for_loop(node),
            Node::With(node) => self.with(node),
            Node::Set(target, expr) => {
                let mut taint = self.expr(expr);
                if self.is_every() || has_words(expr) {
                    self.add_decisions(&mut taint);
                }
                self.assign(target, taint, "set", extent(expr));
            }
            Node::SetBlock(capture) | Node::FilterBlock(capture) => self.capture(capture),
            Node::AutoEscape(expr, body) => {
                self.expr(expr);
                self.block(body);
            }
            Node::Macro(slot, definition) => {
                let taint = self.call_body(definition);
                self.put(*slot, Slot { binding: "macro", place: Place::default(), taint, may_be_unset: false });
            }
            Node::Do(expr) => drop(self.expr(expr)),
            Node::Section(section) => self.section(section),
        }
    }

    fn text(&mut self, literal: &Literal) {
        self.note_words(literal.text.contains(char::is_alphabetic));
        if let Some(decision) = self.decisions.last_mut() {
            let room = MAX_LINES.saturating_sub(decision.lines.len());
            let lines = literal.notable.iter().take(room).map(|range| literal.text[range.clone()].to_owned());
            decision.lines.extend(lines);
        }
    }

    /// Records whether the current place has words of the author's.
    fn note_words(&mut self, has_words: bool) {
        if let Some(decision) = self.decisions.last_mut() {
            decision.has_words |= has_words;
        }
    }

    fn emit(&mut self, taint: Taint, place: Place) {
        if let Some(output) = self.outputs.last_mut() {
            return join(output, taint);
        }
        for (input, Reach { how, path }) in taint {
            let sink = Sink { input, how, span: place.into(), path, lines: Vec::new() };
            self.sinks.entry((place.start as usize, input, false)).or_insert(sink);
        }
    }

    /// Analyzes a block whose output the inputs in `taint` decide about.
    fn decided(&mut self, taint: Taint, place: Place, body: &Block) {
        self.decisions.push(Decision { place, taint, has_words: false, lines: Vec::new() });
        self.block(body);
        let Some(Decision { place, mut taint, has_words, lines }) = self.decisions.pop() else { return };
        if let Some(outer) = self.decisions.last_mut() {
            outer.has_words |= has_words;
            let room = MAX_LINES.saturating_sub(outer.lines.len());
            outer.lines.extend(lines.iter().take(room).cloned());
        }
        if !has_words && !self.is_every() {
            return;
        }
        taint.values_mut().for_each(|reach| reach.how = How::Decides);
        if let Some(output) = self.outputs.last_mut() {
            return join(output, taint);
        }
        for (input, Reach { how, path }) in taint {
            let sink = Sink { input, how, span: place.into(), path, lines: lines.clone() };
            match self.sinks.entry((place.start as usize, input, true)) {
                Entry::Occupied(mut known) => known.get_mut().lines.extend(sink.lines),
                Entry::Vacant(entry) => drop(entry.insert(sink)),
            }
        }
    }

    /// Adds the inputs that decide whether the current place is reached.
    fn add_decisions(&mut self, taint: &mut Taint) {
        for decision in &self.decisions {
            let mut deciding = copied(Some(&decision.taint), &mut self.left);
            deciding.values_mut().for_each(|reach| reach.how = How::Decides);
            join(taint, deciding);
        }
    }

    /// Analyzes branches. Any of them may be taken, so afterwards a slot may hold what any branch has set.
    fn branches(&mut self, branches: &[(Expr, Block)], or_else: &Block) {
        let mark = self.frame().trail.len();
        let mut set = Vec::new();
        // A condition decides about its own branch and about those after it.
        let (mut taint, mut place) = (Taint::new(), Place::default());
        for (condition, body) in branches {
            join(&mut taint, self.expr(condition));
            place = extent(condition);
            let deciding = copied(Some(&taint), &mut self.left);
            self.decided(deciding, place, body);
            set.push(self.frame().undo(mark));
        }
        self.decided(taint, place, or_else);
        set.push(self.frame().undo(mark));
        let paths = set.len();
        let mut setters: BTreeMap<usize, usize> = BTreeMap::new();
        for branch in &set {
            let slots: BTreeSet<_> =
                branch.iter().filter(|(_, value)| value.is_some()).map(|(slot, _)| *slot).collect();
            slots.into_iter().for_each(|slot| *setters.entry(slot).or_default() += 1);
        }
        let was_unset: BTreeSet<_> = { setters.iter() }
            .filter(|(slot, count)| {
                let before = self.frames.last().and_then(|frame| frame.get(**slot));
                **count < paths && before.is_none_or(|before| before.may_be_unset)
            })
            .map(|(slot, _)| *slot)
            .collect();
        for (slot, value) in set.into_iter().flatten() {
            let Some(mut value) = value else { continue };
            let before = self.frames.last().and_then(|frame| frame.get(slot)).map(|before| &before.taint);
            join(&mut value.taint, copied(before, &mut self.left));
            value.may_be_unset |= was_unset.contains(&slot);
            self.put(slot, value);
        }
    }

    fn for_loop(&mut self, node: &For) {
        let place = extent(&node.iter);
        let taint = self.expr(&node.iter);
        for slot in node.own.clone() {
            self.frame().put(slot, None);
        }
        let mut deciding = copied(Some(&taint), &mut self.left);
        self.assign(&node.target, taint, "for", place);
        if let Some(slot) = node.loop_slot {
            // Most attributes of `loop` are numbers and booleans.
            let mut taint = copied(Some(&deciding), &mut self.left);
            let how = self.computed();
            taint.values_mut().for_each(|reach| reach.how = how);
            self.put(slot, Slot { binding: "for", place, taint, may_be_unset: false });
        }
        if let Some(filter) = &node.filter {
            join(&mut deciding, self.expr(filter));
        }
        let or_else = copied(Some(&deciding), &mut self.left);
        self.decided(deciding, place, &node.body);
        self.decided(or_else, place, &node.or_else);
    }

    fn with(&mut self, node: &With) {
        for slot in node.own.clone() {
            self.frame().put(slot, None);
        }
        for (target, value) in &node.assignments {
            let taint = self.expr(value);
            self.assign(target, taint, "with", extent(value));
        }
        self.block(&node.body);
    }

    fn section(&mut self, section: &Section) {
        let place = section.value.place;
        let taint = self.expr(&section.value);
        let deciding = copied(Some(&taint), &mut self.left);
        self.put(section.slot, Slot { binding: "section", place, taint, may_be_unset: false });
        self.decided(deciding, place, &section.body);
    }

    fn capture(&mut self, capture: &Capture) {
        let text = self.aside(&capture.body);
        self.captured.push(text);
        let mut taint = self.expr(&capture.filter);
        self.captured.pop();
        match &capture.target {
            Some(target) => {
                // Captured text nearly always has words in it.
                self.add_decisions(&mut taint);
                self.assign(target, taint, "set", capture.filter.place);
            }
            None => self.emit(taint, capture.filter.place),
        }
    }

    /// Returns the taint of a block's output.
    fn aside(&mut self, body: &Block) -> Taint {
        self.outputs.push(Taint::new());
        self.block(body);
        self.outputs.pop().unwrap_or_default()
    }

    /// Returns the taint of a macro's own output. The taint of the arguments is added at each call.
    fn call_body(&mut self, definition: &MacroDef) -> Taint {
        let own = |taint| Some(Slot { binding: "macro", place: Place::default(), taint, may_be_unset: false });
        let mut frame = Frame { slots: vec![None; definition.frame_size], trail: Vec::new() };
        for slot in 0..definition.params.len() {
            frame.put(slot, own(Taint::new()));
        }
        frame.put(definition.caller_slot, own(Taint::new()));
        for (outer, inner) in &definition.captures {
            let captured = self.frames.last().and_then(|frame| frame.get(*outer));
            let copy = captured.map(|slot| slot.copied(&mut self.left));
            frame.put(*inner, copy.or_else(|| own(Taint::new())));
        }
        self.frames.push(frame);
        for (slot, param) in definition.params.iter().enumerate() {
            let Some(default) = &param.default else { continue };
            let taint = self.expr(default);
            self.frame().put(slot, own(taint));
        }
        let taint = self.aside(&definition.body);
        self.frames.pop();
        taint
    }

    fn assign(&mut self, target: &Target, taint: Taint, binding: &'static str, place: Place) {
        match target {
            Target::Slot(slot) => self.put(*slot, Slot { binding, place, taint, may_be_unset: false }),
            Target::Unpack(items, _) => {
                for item in items {
                    let taint = copied(Some(&taint), &mut self.left);
                    self.assign(item, taint, binding, place);
                }
            }
            Target::Attr(namespace, _) => {
                self.expr(namespace);
                let (slot, is_root) = match &namespace.kind {
                    ExprKind::Local(local) => (local.slot, self.frames.len() == 1),
                    ExprKind::Outer(local) => (local.slot, true),
                    _ => return,
                };
                if is_root {
                    join(self.attributes.entry(slot).or_default(), taint);
                } else if let Some(held) = self.frames.last().and_then(|frame| frame.get(slot)) {
                    let mut value = held.copied(&mut self.left);
                    join(&mut value.taint, taint);
                    self.put(slot, value);
                }
            }
        }
    }

    fn put(&mut self, slot: usize, value: Slot) {
        if self.frames.len() == 1 {
            if slot >= self.ever.len() {
                self.ever.resize(slot + 1, None);
            }
            let taint = copied(Some(&value.taint), &mut self.left);
            match &mut self.ever[slot] {
                Some(ever) => join(&mut ever.taint, taint),
                ever @ None => *ever = Some(Slot { taint, ..value }),
            }
        }
        self.frame().put(slot, Some(value));
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the template's own frame is never popped")
    }

    fn expr(&mut self, expr: &Expr) -> Taint {
        match &expr.kind {
            ExprKind::Const(_) | ExprKind::Function(_) | ExprKind::HostFunction => Taint::new(),
            ExprKind::Captured => copied(self.captured.last(), &mut self.left),
            ExprKind::Input(index) => self.input(*index, expr.place),
            ExprKind::Local(local) => self.local(local),
            ExprKind::Outer(local) => self.outer(local),
            ExprKind::Attr(value, name) => self.attribute(value, name),
            ExprKind::Not(value) => at_least(self.computed(), self.expr(value)),
            ExprKind::Neg(value) => self.expr(value),
            ExprKind::Binary(op, a, b) if op.is_comparison() => at_least(self.computed(), self.all([&**a, &**b])),
            ExprKind::Item(a, b) | ExprKind::Binary(_, a, b) | ExprKind::And(a, b) | ExprKind::Or(a, b) => {
                self.all([&**a, &**b])
            }
            ExprKind::Slice(slice) => {
                let parts = [&slice.start, &slice.stop, &slice.step].into_iter().flatten();
                self.all(std::iter::once(&slice.value).chain(parts))
            }
            ExprKind::Concat(items) | ExprKind::List(items) | ExprKind::Tuple(items) => self.all(items),
            ExprKind::Chain(first, rest) => {
                let operands = std::iter::once(&**first).chain(rest.iter().map(|(_, operand)| operand));
                at_least(self.computed(), self.all(operands))
            }
            ExprKind::Ternary(ternary) => {
                let condition = self.expr(&ternary.condition);
                let mut taint = self.all(std::iter::once(&ternary.then).chain(&ternary.or_else));
                if self.is_every() {
                    // If a branch is a role marker, all of it counts as the text of the condition.
                    let how = if has_line_end(expr) { How::Filtered } else { How::Decides };
                    join(&mut taint, at_least(how, condition));
                } else if has_words(expr) {
                    join(&mut taint, at_least(How::Decides, condition));
                }
                taint
            }
            ExprKind::Dict(pairs) => self.all(pairs.iter().flat_map(|(key, value)| [key, value])),
            ExprKind::Filter(named) | ExprKind::Test(named) => {
                let is_test = matches!(expr.kind, ExprKind::Test(_));
                let mut taint = self.expr(&named.value);
                join(&mut taint, self.args(&named.args));
                let is_measure = is_test || MEASURES.contains(&&*named.name);
                at_least(if is_measure { self.computed() } else { How::Filtered }, taint)
            }
            ExprKind::Call(call) => self.call(call, expr.place),
            ExprKind::Caller(definition) => self.call_body(definition),
            ExprKind::Lookup(lookup) => {
                let mut taint = Taint::new();
                for slot in 0..lookup.contexts {
                    let Some(context) = self.frames.last().and_then(|frame| frame.get(slot)) else { continue };
                    let mut inner = copied(Some(&context.taint), &mut self.left);
                    add_step(&mut inner, context.binding, context.place);
                    join(&mut taint, inner);
                }
                if let Some(index) = lookup.input {
                    join(&mut taint, self.input(index, expr.place));
                }
                taint
            }
        }
    }

    fn all<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) -> Taint {
        let mut taint = Taint::new();
        for expr in exprs {
            join(&mut taint, self.expr(expr));
        }
        taint
    }

    fn args(&mut self, args: &Args) -> Taint {
        let positional = args.positional.iter().map(|(Arg::One(expr) | Arg::All(expr))| expr);
        let named = args.named.iter().map(|(NamedArg::One(_, expr) | NamedArg::All(expr))| expr);
        self.all(positional.chain(named))
    }

    fn call(&mut self, call: &CallExpr, place: Place) -> Taint {
        let (mut taint, step) = match &call.callee {
            Callee::Name(expr, name) => {
                let is_macro = !matches!(expr.kind, ExprKind::Function(_) | ExprKind::HostFunction);
                (self.expr(expr), is_macro.then(|| format!("macro {}", short(name))))
            }
            Callee::Method(expr, _) | Callee::Value(expr) => (self.expr(expr), None),
        };
        let mut brought = self.args(&call.args);
        if let Some(step) = step {
            add_step(&mut brought, &step, place);
        }
        join(&mut taint, brought);
        taint
    }

    fn input(&mut self, index: usize, place: Place) -> Taint {
        self.uses.entry(index).or_insert(place.into());
        Taint::from([(index, Reach { how: How::Text, path: Vec::new() })])
    }

    fn attribute(&mut self, value: &Expr, name: &str) -> Taint {
        let mut taint = self.expr(value);
        // Unlike the other attributes of `loop`, these are items of the list.
        if matches!(name, "previtem" | "nextitem") {
            taint.values_mut().for_each(|reach| reach.how = How::Text);
        }
        taint
    }

    fn local(&mut self, local: &Local) -> Taint {
        let slot = self.frames.last().and_then(|frame| frame.get(local.slot));
        let attributes = self.attributes.get(&local.slot).filter(|_| self.frames.len() == 1);
        let Some(slot) = slot else { return self.otherwise(local) };
        let mut taint = read(local, slot, attributes, &mut self.left);
        if slot.may_be_unset && self.is_every() {
            join(&mut taint, self.otherwise(local));
        }
        taint
    }

    fn outer(&mut self, local: &Local) -> Taint {
        let ever = self.ever.get(local.slot).and_then(Option::as_ref);
        let Some(slot) = self.frames[0].get(local.slot).or(ever) else { return self.otherwise(local) };
        let attributes = self.attributes.get(&local.slot);
        let may_be_unset = slot.may_be_unset;
        let mut taint = read(local, slot, attributes, &mut self.left);
        if let Some(ever) = ever {
            join(&mut taint, read(local, ever, None, &mut self.left));
        }
        if may_be_unset && self.is_every() {
            join(&mut taint, self.otherwise(local));
        }
        taint
    }

    fn otherwise(&mut self, local: &Local) -> Taint {
        local.otherwise.as_ref().map_or_else(Taint::new, |otherwise| self.expr(otherwise))
    }
}

/// Returns the taint of a name that holds a value.
fn read(local: &Local, slot: &Slot, attributes: Option<&Taint>, left: &mut usize) -> Taint {
    let mut taint = copied(Some(&slot.taint), left);
    join(&mut taint, copied(attributes, left));
    let step = format!("{} {}", slot.binding, short(&local.name));
    add_step(&mut taint, &step, slot.place);
    taint
}

/// Returns a taint in which every input contributes at most in this way.
fn at_least(how: How, mut taint: Taint) -> Taint {
    taint.values_mut().for_each(|reach| reach.how = reach.how.max(how));
    taint
}

/// Returns the extent of an expression: from its first name or constant to its end. The parser's positions of operators
/// do not include both operands.
fn extent(expr: &Expr) -> Place {
    let mut extent = Place { start: u32::MAX, end: expr.place.end };
    each_part(expr, &mut |part| {
        use ExprKind::{Const, Function, HostFunction, Input, Local, Lookup, Outer};
        let is_name = matches!(part.kind, Input(_) | Local(_) | Outer(_) | Lookup(_) | Function(_) | HostFunction);
        if is_name || matches!(part.kind, Const(_)) {
            extent.start = extent.start.min(part.place.start);
            extent.end = extent.end.max(part.place.end);
        }
    });
    if extent.start > extent.end { expr.place } else { extent }
}

/// Returns whether the value of an expression may be text that the author wrote, and not only the text of inputs.
fn has_words(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Const(Const::Str(text)) => text.contains(char::is_alphabetic),
        ExprKind::Concat(items) | ExprKind::List(items) | ExprKind::Tuple(items) => items.iter().any(has_words),
        ExprKind::Binary(_, a, b) | ExprKind::And(a, b) | ExprKind::Or(a, b) => has_words(a) || has_words(b),
        ExprKind::Ternary(ternary) => has_words(&ternary.then) || ternary.or_else.as_ref().is_some_and(has_words),
        ExprKind::Dict(pairs) => pairs.iter().any(|(_, value)| has_words(value)),
        ExprKind::Filter(named) => has_words(&named.value),
        ExprKind::Attr(value, _) | ExprKind::Item(value, _) => has_words(value),
        ExprKind::Call(call) => matches!(call.callee, Callee::Name(..)),
        _ => false,
    }
}

/// Returns whether a constant in an expression has several lines.
fn has_line_end(expr: &Expr) -> bool {
    let mut found = false;
    each_part(expr, &mut |part| {
        found |= matches!(&part.kind, ExprKind::Const(Const::Str(text)) if text.contains('\n'))
    });
    found
}

/// Copies a taint, unless the limit on copies has been reached.
fn copied(taint: Option<&Taint>, left: &mut usize) -> Taint {
    let Some(taint) = taint else { return Taint::new() };
    let rest = left.checked_sub(taint.len());
    *left = rest.unwrap_or(0);
    if rest.is_some() { taint.clone() } else { Taint::new() }
}

fn join(taint: &mut Taint, more: Taint) {
    for (input, reach) in more {
        let is_full = taint.len() >= MAX_TAINT;
        match taint.entry(input) {
            Entry::Occupied(mut known) if reach.how < known.get().how => drop(known.insert(reach)),
            Entry::Vacant(entry) if !is_full => drop(entry.insert(reach)),
            _ => {}
        }
    }
}

fn add_step(taint: &mut Taint, name: &str, place: Place) {
    for Reach { path, .. } in taint.values_mut() {
        if path.len() < MAX_PATH && path.last().is_none_or(|last| last.name != name) {
            path.push(Step { name: name.to_owned(), span: place.into() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CompileOptions, Template};
    use super::*;

    fn flow(source: &str) -> (Vec<String>, Vec<String>) {
        let template = Template::compile(source, CompileOptions::default()).expect("it compiles");
        let Flow { uses, sinks, .. } = analyse(&template.tree, Detail::Notable);
        let name = |index: usize| template.tree.inputs[index].name.to_string();
        let mut uses: Vec<_> = uses.into_keys().map(name).collect();
        uses.sort();
        let sink = |sink: Sink| {
            let path = sink.path.into_iter().map(|step| step.name);
            std::iter::once(name(sink.input)).chain(path).collect::<Vec<_>>().join(" > ")
        };
        let sinks = sinks.into_iter().filter(|sink| sink.how != How::Decides);
        (uses, sinks.map(sink).collect())
    }

    #[test]
    fn names_that_a_template_sets_are_its_own() {
        let cases: [(&str, &[&str], &[&str]); 24] = [
            ("{{ a }}", &["a"], &["a"]),
            ("{% set x = a %}{{ x }}", &["a"], &["a > set x"]),
            ("{{ x }}{% set x = 1 %}", &["x"], &["x"]),
            ("{% if a %}{% set x = 1 %}{% endif %}{{ x }}", &["a"], &[]),
            ("{% if a %}{% set x = 1 %}{% else %}{{ x }}{% endif %}", &["a", "x"], &["x"]),
            ("{% for m in items %}{{ m }}{{ loop.index }}{% endfor %}", &["items"], &["items > for m"]),
            ("{% for m in items %}{% endfor %}{{ m }}", &["items", "m"], &["m"]),
            ("{% for k, v in o|items %}{{ v }}{% endfor %}", &["o"], &["o > for v"]),
            ("{% for i in xs %}{{ y }}{% set y = i %}{% endfor %}", &["xs", "y"], &["y"]),
            ("{% with x = a %}{{ x }}{% endwith %}{{ x }}", &["a", "x"], &["a > with x", "x"]),
            ("{% set ns = namespace() %}{% set ns.v = a %}{{ ns.v }}", &["a"], &["a > set ns"]),
            (
                "{% set n = namespace(v='') %}{% for m in xs %}{{ n.v }}{% set n.v = m %}{% endfor %}",
                &["xs"],
                &["xs > for m > set n"],
            ),
            ("{% macro f(x) %}[{{ x }}]{% endmacro %}{{ f(a) }}", &["a"], &["a > macro f"]),
            ("{% macro f() %}{{ a }}{% endmacro %}{{ f() }}", &["a"], &["a > macro f"]),
            ("{% macro f() %}{{ a }}{% endmacro %}", &["a"], &[]),
            ("{% macro f() %}{{ g }}{% endmacro %}{% set g = a %}{{ f() }}", &["a"], &["a > set g > macro f"]),
            ("{% macro f() %}{{ caller() }}{% endmacro %}{% call f() %}{{ a }}{% endcall %}", &["a"], &["a > macro f"]),
            ("{% macro f(x, y=x) %}{% macro g() %}{{ x }}{% endmacro %}{{ g() }}{% endmacro %}{{ f(1) }}", &[], &[]),
            ("{% set x %}{{ a }}{% endset %}{{ x|upper }}", &["a"], &["a > set x"]),
            ("{% filter replace('X', a) %}aXb{% endfilter %}", &["a"], &["a"]),
            ("{{ 'x' if a else b }}", &["a", "b"], &["b"]),
            ("{% if a == b %}x{% endif %}", &["a", "b"], &[]),
            ("{{ range(3) }}{{ dict(a=b) }}", &["b"], &["b"]),
            ("{% set a, b = c, d %}{{ a }}", &["c", "d"], &["c > set a", "d > set a"]),
        ];
        for (source, uses, sinks) in cases {
            let expected: (Vec<_>, Vec<_>) =
                (uses.iter().map(|s| (*s).to_owned()).collect(), sinks.iter().map(|s| (*s).to_owned()).collect());
            assert_eq!(flow(source), expected, "{source}");
        }
    }

    /// Conditions and loops decide about the author's words in them.
    #[test]
    fn decisions_are_sinks() {
        let cases: [(&str, &[&str]); 16] = [
            ("{% if a %}yes{% endif %}", &["a Decides"]),
            ("{% if a %}{{ a }}{% endif %}", &["a Text"]),
            ("{% if a %}yes{% elif b %}no{% endif %}", &["a Decides", "a Decides", "b Decides"]),
            ("{% if a %}{% else %}no{% endif %}", &["a Decides"]),
            ("{% for x in xs %}word {{ x }}{% endfor %}", &["xs Decides", "xs Text"]),
            ("{% for x in xs %}{{ loop.index }}{% endfor %}", &["xs Decides"]),
            ("{% for x in xs %}{{ loop.previtem }}{% endfor %}", &["xs Text"]),
            (
                "{{ a | upper }}{{ a | length }}{{ a is odd }}{{ a == b }}",
                &["a Filtered", "a Decides", "a Decides", "a Decides", "b Decides"],
            ),
            ("{{ 'yes' if a else b }}", &["a Decides", "b Text"]),
            ("{{ a if c else b }}", &["a Text", "b Text"]),
            ("{% if a %}{% set x = 'yes' %}{% endif %}{{ x }}", &["a Decides"]),
            ("{% if a %}{% set x = b %}{% endif %}{{ x }}", &["b Text"]),
            ("{% macro f() %}{% if a %}yes{% endif %}{% endmacro %}{{ f() }}", &["a Decides"]),
            ("{% macro f() %}{% if a %}yes{% endif %}{% endmacro %}", &[]),
            ("{% if a %}{% if b %}yes{% endif %}{% endif %}", &["a Decides", "b Decides"]),
            ("{% set x = a | upper %}{{ x }}{{ a ~ x }}", &["a Filtered", "a Text"]),
        ];
        for (source, expected) in cases {
            let template = Template::compile(source, CompileOptions::default()).expect("it compiles");
            let name = |index: usize| template.tree.inputs[index].name.to_string();
            let sinks = analyse(&template.tree, Detail::Notable).sinks;
            let found: Vec<_> = sinks.iter().map(|sink| format!("{} {:?}", name(sink.input), sink.how)).collect();
            assert_eq!(found, expected, "{source}");
        }
    }

    #[test]
    fn a_path_has_positions() {
        let source = "{% for d in docs %}{% set t = d.text %}{{ t | trim }}{% endfor %}";
        let template = Template::compile(source, CompileOptions::default()).expect("it compiles");
        let sinks = analyse(&template.tree, Detail::Notable).sinks;
        let path = sinks[0].path.iter().map(|step| (step.name.as_str(), &source[step.span.range()]));
        assert_eq!(&source[sinks[0].span.range()], "t | trim");
        assert_eq!(path.collect::<Vec<_>>(), [("for d", "docs"), ("set t", "d.text")]);
    }
}
