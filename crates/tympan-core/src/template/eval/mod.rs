//! Evaluation of compiled templates.

pub(crate) mod access;
mod call;
pub(crate) mod expr;
pub(crate) mod filters;
pub(crate) mod host;
mod methods;
pub(crate) mod predicates;
mod write;

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use crate::error::{Error, Kind, Result};
use crate::template::functions::TemplateFunctions;
use crate::template::input::InputRef;
use crate::template::tree::{Block, Capture, Expr, For, Node, Section, Target, Tree, With, Word};
use crate::template::value::dict::Dict;
use crate::template::value::limits::{Budget, Limits};
use crate::template::value::print;
use crate::template::value::{Items, LoopState, Repr, Value, ValueKind};
use crate::text::origin::Origin;
use crate::text::traced::{Note, TracedText};

/// The template engine's view of a thread, image, file or audio input.
pub(crate) trait RichText: std::fmt::Debug {
    /// Returns the text that represents the input in the output.
    fn nonce(&self) -> &str;

    /// Estimates how many bytes another copy of the input takes up in messages.
    fn copy_bytes(&self) -> usize;
}

/// The value of one of a template's inputs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum InputValue<'a> {
    /// Using the input is an error.
    Missing,
    /// An optional input without a value, which renders as nothing.
    Absent,
    Present(InputRef<'a>),
    Rich(&'a dyn RichText),
}

/// Options for rendering a template.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EvalOptions<'a> {
    /// Whether undefined values render as an empty string.
    pub(crate) lenient: bool,
    pub(crate) limits: Limits,
    /// Whether the output records where its interpolations end.
    pub(crate) mark_ends: bool,
    /// The filters, tests and functions of the host.
    pub(crate) functions: Option<&'a TemplateFunctions>,
    /// The seed of the filter `random`.
    pub(crate) seed: Option<u64>,
}

/// The result of a render.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) traced: TracedText,
    /// The positions of rich inputs, and their indexes.
    pub(crate) rich: Vec<(Range<usize>, usize)>,
    /// The positions of the author's notable text, if the template was compiled with [`Tree::notable`].
    pub(crate) notable: Option<Vec<Note>>,
    /// The ends of interpolations, in order, if they were requested.
    pub(crate) ends: Vec<usize>,
}

/// Renders a template.
pub(crate) fn render<'a>(tree: &'a Tree, inputs: &'a [InputValue<'a>], options: EvalOptions<'a>) -> Result<Output> {
    let (bytes, pieces) = expected_size(tree, inputs);
    let mut eval = Eval {
        tree,
        given: inputs,
        frame: if tree.frame_size == 0 { Frame::new() } else { vec![Value::UNSET; tree.frame_size] },
        outer: Frame::new(),
        frame_id: 0,
        frames_made: 0,
        namespaces: Vec::new(),
        captured: Vec::new(),
        out: TracedText::with_capacity(bytes.min(options.limits.output_bytes), pieces),
        captures: 0,
        rich: Vec::new(),
        written_rich: Origin::default(),
        notable: Vec::with_capacity(tree.notes),
        ends: options.mark_ends.then(|| Vec::with_capacity(pieces / 2)),
        budget: Budget::new(options.limits),
        lenient: options.lenient,
        escape: Escape::None,
        calls: 0,
        stack: tree.stack,
        functions: options.functions,
        random: options.seed,
    };
    eval.block(&tree.body)?;
    tree.hint.set(eval.out.as_str().len(), eval.out.piece_ends().len());
    let notable = tree.notable.map(|_| eval.notable);
    Ok(Output { traced: eval.out, rich: eval.rich, notable, ends: eval.ends.unwrap_or_default() })
}

/// Estimates how many bytes and pieces the output will have: at least the text that is interpolated unchanged, and
/// about as much as in the last render.
fn expected_size(tree: &Tree, inputs: &[InputValue<'_>]) -> (usize, usize) {
    let mut plain = tree.literal_bytes;
    for &index in &tree.plain_inputs {
        if let Some(InputValue::Present(given)) = inputs.get(index) {
            plain += given.as_str().map_or(0, str::len);
        }
    }
    let (bytes, pieces) = tree.hint.get();
    let slack = bytes / 16;
    (plain.max(bytes + slack), pieces.max(2 * tree.interpolations + 2))
}

fn input_value(index: usize, input: InputValue<'_>) -> Value<'_> {
    let origin = Origin::input(index);
    match input {
        InputValue::Present(given) => Value::from_input(given, origin),
        InputValue::Missing => Value::undefined(origin),
        InputValue::Absent => Value::absent(origin),
        InputValue::Rich(_) => Value::new(Repr::Rich(index), origin),
    }
}

/// How text is escaped when it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Html,
    Json,
}

/// The effect of a statement on the enclosing loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// Slots with their values.
type Frame<'a> = Vec<Value<'a>>;

pub(crate) struct Eval<'a> {
    tree: &'a Tree,
    given: &'a [InputValue<'a>],
    /// The current frame, and the template's own frame while a macro runs.
    frame: Frame<'a>,
    outer: Frame<'a>,
    frame_id: usize,
    frames_made: usize,
    namespaces: Vec<Dict<'a>>,
    /// The texts of the captures whose filters are being evaluated.
    captured: Vec<Value<'a>>,
    out: TracedText,
    /// The number of nested captures.
    captures: usize,
    rich: Vec<(Range<usize>, usize)>,
    /// The rich inputs that have been written at least once.
    written_rich: Origin,
    notable: Vec<Note>,
    /// The ends of interpolations, if they were requested.
    ends: Option<Vec<usize>>,
    pub(crate) budget: Budget,
    pub(crate) lenient: bool,
    escape: Escape,
    calls: usize,
    /// How much of the stack the template and the active calls may take up.
    stack: usize,
    /// The filters, tests and functions of the host.
    pub(crate) functions: Option<&'a TemplateFunctions>,
    /// The state of the random numbers, if the host has set a seed.
    random: Option<u64>,
}

impl<'a> Eval<'a> {
    fn block(&mut self, nodes: &'a Block) -> Result<Flow> {
        for node in nodes {
            self.budget.step(1)?;
            let flow = match node {
                Node::Text(literal) => {
                    if !literal.notable.is_empty() {
                        self.note_literal(literal)?;
                    }
                    self.out.push(&literal.text, literal.authored().origin());
                    self.budget.output(self.out.as_str().len())?;
                    Flow::Next
                }
                Node::Emit(expr) => {
                    let start = self.out.as_str().len();
                    self.emit(expr).map_err(|error| error.at(expr.place.into()))?;
                    if self.ends.is_some() {
                        self.mark_end(start);
                    }
                    Flow::Next
                }
                Node::If(branches, or_else) => self.branches(branches, or_else)?,
                Node::For(node) => {
                    self.for_loop(node)?;
                    Flow::Next
                }
                other => self.statement(other)?,
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// Runs the less common statements, to keep the innermost loop small.
    #[inline(never)]
    fn statement(&mut self, node: &'a Node) -> Result<Flow> {
        match node {
            Node::With(node) => return self.with(node),
            Node::Set(target, value) => {
                let value = self.eval(value)?;
                self.assign(target, value)?;
            }
            Node::SetBlock(capture) | Node::FilterBlock(capture) => return self.capture_block(capture),
            Node::AutoEscape(mode, body) => return self.auto_escape(mode, body),
            Node::Macro(slot, def) => {
                let value = self.make_macro(def, Some(*slot));
                self.frame[*slot] = value;
            }
            Node::Do(call) => {
                self.eval(call)?;
            }
            Node::Section(section) => return self.section(section),
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
            Node::EmitWhole(expr) => {
                let (bytes, pieces) = (self.out.as_str().len(), self.out.piece_ends().len());
                // These lines are rare, so they do not need the fast paths of other interpolations.
                let value = self.eval(expr).map_err(|error| error.at(expr.place.into()))?;
                self.write(&value, expr).map_err(|error| error.at(expr.place.into()))?;
                self.out.unite(bytes, pieces);
                self.mark_end(bytes);
            }
            Node::Text(_) | Node::Emit(_) | Node::If(..) | Node::For(_) => {}
        }
        Ok(Flow::Next)
    }

    /// Returns the next random number, or `None` if the host has not set a seed. The numbers only need to look random,
    /// so a counter whose bits are mixed (SplitMix64) is enough.
    fn next_random(&mut self) -> Option<u64> {
        let state = self.random.as_mut()?;
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = *state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(bits ^ (bits >> 31))
    }

    fn branches(&mut self, branches: &'a [(Expr, Block)], or_else: &'a Block) -> Result<Flow> {
        for (condition, body) in branches {
            if self.holds(condition)? {
                return self.block(body);
            }
        }
        self.block(or_else)
    }

    /// Runs a function with its output captured, and returns what it wrote.
    fn capture<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<(Value<'a>, T)> {
        let out = std::mem::take(&mut self.out);
        self.captures += 1;
        let output = self.budget.begin_capture(out.as_str().len());
        let result = run(self);
        self.budget.end_capture(output);
        self.captures -= 1;
        let traced = std::mem::replace(&mut self.out, out);
        let result = result?;
        self.budget.make(traced.as_str().len())?;
        let is_safe = self.escape != Escape::None;
        Ok((if is_safe { Value::safe_text(traced) } else { Value::text(traced) }, result))
    }

    fn capture_block(&mut self, capture: &'a Capture) -> Result<Flow> {
        let (text, flow) = self.capture(|eval| eval.block(&capture.body))?;
        self.captured.push(text);
        let value = self.eval(&capture.filter);
        self.captured.pop();
        let value = value?;
        match &capture.target {
            Some(target) => self.assign(target, value)?,
            None => {
                let start = self.out.as_str().len();
                self.write(&value, &capture.filter)?;
                self.mark_end(start);
            }
        }
        Ok(flow)
    }

    fn auto_escape(&mut self, mode: &'a Expr, body: &'a Block) -> Result<Flow> {
        let mode = self.eval(mode)?;
        let escape = match (mode.as_str(), &mode.repr) {
            (Some("html"), _) | (None, Repr::Bool(true)) => Escape::Html,
            (Some("json"), _) => Escape::Json,
            (Some("none"), _) | (None, _) => Escape::None,
            _ => {
                return Err(Error::new(
                    Kind::InvalidOperation,
                    "autoescape: expected true, false, \"html\" or \
                \"json\"",
                ));
            }
        };
        let before = std::mem::replace(&mut self.escape, escape);
        let flow = self.block(body);
        self.escape = before;
        flow
    }

    fn with(&mut self, node: &'a With) -> Result<Flow> {
        self.budget.fill(node.own.len())?;
        self.frame[node.own.clone()].fill(Value::UNSET);
        for (target, value) in &node.assignments {
            let value = self.eval(value)?;
            self.assign(target, value)?;
        }
        self.block(&node.body)
    }

    fn assign(&mut self, target: &'a Target, value: Value<'a>) -> Result<()> {
        match target {
            Target::Slot(slot) => {
                self.frame[*slot] = value;
                Ok(())
            }
            Target::Unpack(targets, place) => self.unpack(targets, &value).map_err(|error| error.at((*place).into())),
            Target::Attr(namespace, name) => self.assign_attr(namespace, name, value),
        }
    }

    fn assign_attr(&mut self, namespace: &'a Expr, name: &'a Word, value: Value<'a>) -> Result<()> {
        let Repr::Namespace(index) = self.eval(namespace)?.repr else {
            let error = Error::new(Kind::InvalidOperation, "only attributes of a namespace can be assigned");
            return Err(error.at(namespace.place.into()).with_help("create one with {% set ns = namespace() %}"));
        };
        if value.is_too_deep() {
            return Err(print::too_deep());
        }
        let mut meter = self.budget.meter();
        let name = Value::written(Repr::Str(name), name.authored());
        self.namespaces[index].insert(name, value, &mut meter);
        self.budget.pay(&meter)
    }

    fn unpack(&mut self, targets: &'a [Target], value: &Value<'a>) -> Result<()> {
        let items = match value.kind() {
            ValueKind::String => None,
            _ => self.iterate(value).ok(),
        };
        let Some(items) = items else {
            let details = format!("cannot unpack {} into {} names", value.kind().name(), targets.len());
            return Err(Error::new(Kind::InvalidOperation, details));
        };
        if items.len() != targets.len() {
            let details = format!("cannot unpack {} values into {} names", items.len(), targets.len());
            return Err(Error::new(Kind::InvalidOperation, details));
        }
        for (target, item) in targets.iter().zip(items.iter()) {
            self.assign(target, item)?;
        }
        Ok(())
    }

    fn for_loop(&mut self, node: &'a For) -> Result<()> {
        let iterable = self.eval(&node.iter)?;
        if matches!(iterable.repr, Repr::Undefined | Repr::Unset) && !self.lenient {
            return Err(self.undefined(&node.iter));
        }
        let items = self.iterate(&iterable).map_err(|error| error.at(node.iter.place.into()))?;
        self.run_loop(node, items, 0)
    }

    /// Runs a loop over these items. `depth` is its recursion depth.
    fn run_loop(&mut self, node: &'a For, items: Items<'a>, depth: usize) -> Result<()> {
        let items = match &node.filter {
            Some(filter) => self.select(node, filter, &items)?,
            None => items,
        };
        let state = node.loop_slot.map(|slot| {
            let state = Rc::new(LoopState {
                items: items.clone(),
                index: Cell::new(0),
                depth,
                last_changed: RefCell::new(None),
                ended: Cell::new(false),
                recursion: node.recursive.then_some(node),
                frame_id: self.frame_id,
            });
            (slot, state)
        });
        let result = self.passes(node, &items, state.as_ref());
        if let Some((_, state)) = state {
            state.ended.set(true);
            state.last_changed.take();
        }
        if !result? {
            self.block(&node.or_else)?;
        }
        Ok(())
    }

    /// Runs the iterations of a loop. Returns whether there was one. As in Jinja, a first iteration that ends with
    /// `break` does not count.
    fn passes(&mut self, node: &'a For, items: &Items<'a>, state: Option<&(usize, Rc<LoopState<'a>>)>) -> Result<bool> {
        for index in 0..items.len() {
            self.budget.step(1)?;
            let Some(item) = items.get(index) else { break };
            if !node.own.is_empty() {
                self.budget.fill(node.own.len())?;
                self.frame[node.own.clone()].fill(Value::UNSET);
            }
            if let Some((slot, state)) = state {
                state.index.set(index);
                self.frame[*slot] = Value::loop_state(state.clone());
            }
            match &node.target {
                Target::Slot(slot) => self.frame[*slot] = item,
                target => self.assign(target, item)?,
            }
            if self.block(&node.body)? == Flow::Break {
                return Ok(index > 0);
            }
        }
        Ok(items.len() > 0)
    }

    /// Returns the items that pass a loop's inline `if`.
    fn select(&mut self, node: &'a For, filter: &'a Expr, items: &Items<'a>) -> Result<Items<'a>> {
        self.budget.make_list(items.len())?;
        let mut selected = Vec::new();
        let mut decided = items.shape();
        for item in items.iter() {
            self.assign(&node.target, item.clone())?;
            let holds = self.eval(filter)?;
            decided |= holds.whole_origin();
            if holds.is_true() {
                selected.push(item);
            }
        }
        let list = Value::list(selected, crate::template::value::ListKind::List, decided);
        self.iterate(&list)
    }

    fn section(&mut self, section: &'a Section) -> Result<Flow> {
        let value = self.eval(&section.value)?;
        // In Mustache, an object is always true, even if it is empty.
        let holds = value.is_true() || value.kind() == ValueKind::Map;
        match (holds, section.inverted) {
            (true, false) => self.section_passes(section, value),
            (false, true) => self.block(&section.body),
            _ => Ok(Flow::Next),
        }
    }

    fn section_passes(&mut self, section: &'a Section, value: Value<'a>) -> Result<Flow> {
        let Some(items) = crate::template::value::ops::sequence(&value) else {
            self.frame[section.slot] = value;
            return self.block(&section.body);
        };
        for item in items.iter() {
            self.budget.step(1)?;
            self.frame[section.slot] = item;
            self.block(&section.body)?;
        }
        Ok(Flow::Next)
    }
}
