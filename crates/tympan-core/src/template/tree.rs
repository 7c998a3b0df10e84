//! The syntax tree that templates of every syntax compile to.
//!
//! Names are resolved at compile time: an expression holds the slot and the frame that it reads, so rendering never
//! looks up a variable by name. There is one frame for the template itself and a new one for every macro call.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::template::Notable;
use crate::text::origin::Origin;
use crate::text::source::Span;

/// Proof that something was written in the template. Only parts of the compiled tree can create it, and without it no
/// value in a render can have the author's origin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Authored(());

impl Authored {
    pub(crate) const fn origin(self) -> Origin {
        Origin::AUTHOR
    }
}

/// Implements `authored` for parts of the tree.
macro_rules! authored {
    ($($part:ty),*) => {$(
        impl $part {
            /// Returns the proof that the template contains this.
            pub(crate) const fn authored(&self) -> Authored {
                Authored(())
            }
        }
    )*};
}

authored!(Literal, Const, Function, MacroDef, Word, Tree);

/// A word of the template that can become a value: the name of an argument or of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Word(Box<str>);

impl From<&str> for Word {
    fn from(word: &str) -> Self {
        Self(word.into())
    }
}

impl std::ops::Deref for Word {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A compiled template.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) body: Block,
    /// The inputs: names that the template reads and does not define itself.
    pub(crate) inputs: Vec<Name>,
    /// The number of slots in the template's own frame.
    pub(crate) frame_size: usize,
    /// How much of the stack the template may take up, not counting the macros and recursive loops it calls. One unit
    /// is about half a KiB in unoptimized builds.
    pub(crate) stack: usize,
    /// The number of bytes of literal text, and the inputs that are interpolated unchanged. They are used to estimate
    /// the size of the output.
    pub(crate) literal_bytes: usize,
    pub(crate) plain_inputs: Vec<usize>,
    pub(crate) interpolations: usize,
    pub(crate) hint: SizeHint,
    /// See [`CompileOptions::notable`](super::CompileOptions::notable).
    pub(crate) notable: Option<Notable>,
    /// The number of notable places in the literals.
    pub(crate) notes: usize,
}

/// Literal text of the template.
#[derive(Debug, PartialEq)]
pub(crate) struct Literal {
    pub(crate) text: Box<str>,
    /// The notable parts of the text.
    pub(crate) notable: Vec<Range<usize>>,
}

impl Literal {
    pub(crate) fn new(text: &str, notable: Option<Notable>) -> Self {
        Self { text: text.into(), notable: notable.map(|notable| (notable.lines)(text)).unwrap_or_default() }
    }
}

/// The size of the last output, so that the next one is allocated once. It only affects capacities, up to
/// [`SizeHint::MAX_BYTES`].
#[derive(Debug, Default)]
pub(crate) struct SizeHint {
    bytes: AtomicUsize,
    pieces: AtomicUsize,
}

impl SizeHint {
    const MAX_BYTES: usize = 64 << 10;
    const MAX_PIECES: usize = 4 << 10;

    pub(crate) fn get(&self) -> (usize, usize) {
        (self.bytes.load(Ordering::Relaxed), self.pieces.load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, bytes: usize, pieces: usize) {
        // Writing only changed values avoids contention between threads.
        let (bytes, pieces) = (bytes.min(Self::MAX_BYTES), pieces.min(Self::MAX_PIECES));
        if self.get() != (bytes, pieces) {
            self.bytes.store(bytes, Ordering::Relaxed);
            self.pieces.store(pieces, Ordering::Relaxed);
        }
    }
}

/// A name and the place where it is first mentioned.
#[derive(Debug, Clone)]
pub(crate) struct Name {
    pub(crate) name: Box<str>,
    pub(crate) span: Place,
}

pub(crate) type Block = Vec<Node>;

/// A span in half the space. Templates are shorter than 4 GiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl From<Span> for Place {
    fn from(span: Span) -> Self {
        let narrow = |offset| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: narrow(span.start), end: narrow(span.end) }
    }
}

impl From<Place> for Span {
    fn from(place: Place) -> Self {
        Self::new(place.start as usize, place.end as usize)
    }
}

/// A statement.
#[derive(Debug, PartialEq)]
pub(crate) enum Node {
    Text(Literal),
    Emit(Expr),
    /// An interpolation in a protected line. If an input contributes to it, all of it counts as the input's, so that it
    /// cannot break the line.
    EmitWhole(Expr),
    /// Conditions with their bodies, and the `else` body.
    If(Vec<(Expr, Block)>, Block),
    For(Box<For>),
    With(Box<With>),
    Set(Target, Expr),
    SetBlock(Box<Capture>),
    FilterBlock(Box<Capture>),
    AutoEscape(Expr, Block),
    Macro(usize, Box<MacroDef>),
    Do(Expr),
    /// A Mustache section.
    Section(Box<Section>),
    Break,
    Continue,
}

/// Text that is rendered separately, filtered, and then emitted or stored.
#[derive(Debug, PartialEq)]
pub(crate) struct Capture {
    pub(crate) body: Block,
    /// An expression in which [`ExprKind::Captured`] is the text.
    pub(crate) filter: Expr,
    /// The target of the assignment. `None` emits the result.
    pub(crate) target: Option<Target>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct For {
    pub(crate) target: Target,
    pub(crate) iter: Expr,
    pub(crate) filter: Option<Expr>,
    pub(crate) body: Block,
    pub(crate) or_else: Block,
    pub(crate) recursive: bool,
    /// The slot of `loop`, if the body mentions it.
    pub(crate) loop_slot: Option<usize>,
    /// The slots of the names that the body sets. They are unset at the start of each iteration.
    pub(crate) own: Range<usize>,
    /// All slots of the loop and its body. They are saved while the loop recurses.
    pub(crate) all: Range<usize>,
    /// See [`Tree::stack`].
    pub(crate) stack: usize,
}

#[derive(Debug, PartialEq)]
pub(crate) struct With {
    pub(crate) assignments: Vec<(Target, Expr)>,
    pub(crate) body: Block,
    /// The slots of the names that the block introduces. They are unset at its start.
    pub(crate) own: Range<usize>,
}

/// A Mustache section: `{{#x}}…{{/x}}` or, inverted, `{{^x}}…{{/x}}`.
#[derive(Debug, PartialEq)]
pub(crate) struct Section {
    pub(crate) value: Expr,
    pub(crate) inverted: bool,
    /// The slot of the section's context.
    pub(crate) slot: usize,
    pub(crate) body: Block,
}

/// The target of an assignment.
#[derive(Debug)]
pub(crate) enum Target {
    Slot(usize),
    /// An attribute of a namespace.
    Attr(Box<Expr>, Word),
    Unpack(Vec<Target>, Place),
}

#[derive(Debug, PartialEq)]
pub(crate) struct MacroDef {
    pub(crate) name: Box<str>,
    /// The parameters. They take the first slots of the macro's frame, in order.
    pub(crate) params: Vec<Param>,
    /// The slot of `caller`.
    pub(crate) caller_slot: usize,
    /// Slots of the enclosing macro's frame, and the slots of this frame that receive their values when the macro is
    /// declared.
    pub(crate) captures: Vec<(usize, usize)>,
    pub(crate) body: Block,
    pub(crate) frame_size: usize,
    /// See [`Tree::stack`].
    pub(crate) stack: usize,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Param {
    pub(crate) name: Box<str>,
    pub(crate) default: Option<Expr>,
}

/// An expression and its position.
#[derive(Debug)]
pub(crate) struct Expr {
    pub(crate) kind: ExprKind,
    pub(crate) place: Place,
}

#[derive(Debug, PartialEq)]
pub(crate) enum ExprKind {
    Const(Const),
    /// An input, by its index.
    Input(usize),
    /// A slot of the current frame.
    Local(Local),
    /// A slot of the template's own frame, read from inside a macro.
    Outer(Local),
    /// The text of the capture that this filter belongs to.
    Captured,
    /// A built-in function.
    Function(Function),
    /// The name of a call that is neither a macro nor a declared input. Only a function of the host can have it.
    HostFunction,
    Attr(Box<Expr>, Box<str>),
    Item(Box<Expr>, Box<Expr>),
    Slice(Box<SliceExpr>),
    Not(Box<Expr>),
    Neg(Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `a ~ b ~ c` as one operation, so that a long chain is neither deep nor quadratic.
    Concat(Vec<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    /// `a < b <= c`. Each operand is evaluated once.
    Chain(Box<Expr>, Vec<(BinaryOp, Expr)>),
    Ternary(Box<TernaryExpr>),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Filter(Box<Named>),
    Test(Box<Named>),
    Call(Box<CallExpr>),
    /// An anonymous macro: the body of a `call` block.
    Caller(Box<MacroDef>),
    /// A dotted Mustache name. The first part is looked up in the contexts, innermost first.
    Lookup(Box<Lookup>),
}

/// The built-in functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Range,
    Dict,
    Namespace,
}

impl Function {
    pub(crate) const NAMES: &[&str] = &["range", "dict", "namespace"];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "range" => Self::Range,
            "dict" => Self::Dict,
            "namespace" => Self::Namespace,
            _ => return None,
        })
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Dict => "dict",
            Self::Namespace => "namespace",
        }
    }
}

/// A constant in the template.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Const {
    None,
    Bool(bool),
    Int(i64),
    Big(i128),
    Float(f64),
    Str(Box<str>),
}

/// A slot, and the fallback for its name while the slot is unset.
#[derive(Debug, PartialEq)]
pub(crate) struct Local {
    pub(crate) slot: usize,
    pub(crate) name: Box<str>,
    pub(crate) otherwise: Option<Box<Expr>>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct SliceExpr {
    pub(crate) value: Expr,
    pub(crate) start: Option<Expr>,
    pub(crate) stop: Option<Expr>,
    pub(crate) step: Option<Expr>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct TernaryExpr {
    pub(crate) condition: Expr,
    pub(crate) then: Expr,
    pub(crate) or_else: Option<Expr>,
}

/// An applied filter or test.
#[derive(Debug, PartialEq)]
pub(crate) struct Named {
    pub(crate) name: Box<str>,
    /// The shortcut for the filter, if it has one.
    pub(crate) shortcut: Option<Shortcut>,
    pub(crate) value: Expr,
    pub(crate) args: Args,
}

/// Filters that nearly every template uses, with at most one positional argument and no named ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortcut {
    Default,
    /// A default that is a literal string and cannot be part of anything notable.
    PlainDefault,
    Join,
}

impl Shortcut {
    pub(crate) fn is_default(self) -> bool {
        matches!(self, Self::Default | Self::PlainDefault)
    }

    pub(crate) fn of(name: &str, args: &Args, notable: Option<Notable>) -> Option<Self> {
        let is_plain = match args.positional.first() {
            Some(Arg::One(Expr { kind: ExprKind::Const(Const::Str(text)), .. })) => {
                notable.is_none_or(|notable| !(notable.part)(text))
            }
            _ => false,
        };
        let is_simple = args.named.is_empty() && args.positional.len() <= 1;
        match name {
            _ if !is_simple || matches!(args.positional.first(), Some(Arg::All(_))) => None,
            "default" | "d" if is_plain => Some(Self::PlainDefault),
            "default" | "d" => Some(Self::Default),
            "join" => Some(Self::Join),
            _ => None,
        }
    }
}

#[derive(Debug, PartialEq)]
pub(crate) struct CallExpr {
    pub(crate) callee: Callee,
    pub(crate) args: Args,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Callee {
    /// A call by name: a macro, a value, or a built-in function.
    Name(Expr, Box<str>),
    Method(Expr, Box<str>),
    Value(Expr),
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Args {
    pub(crate) positional: Vec<Arg>,
    pub(crate) named: Vec<NamedArg>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Arg {
    One(Expr),
    /// `*list`
    All(Expr),
}

#[derive(Debug, PartialEq)]
pub(crate) enum NamedArg {
    One(Word, Expr),
    /// `**dict`
    All(Expr),
}

/// See [`ExprKind::Lookup`].
#[derive(Debug, PartialEq)]
pub(crate) struct Lookup {
    /// The number of enclosing sections with a context. The innermost one is in the last of that many slots.
    pub(crate) contexts: usize,
    /// The input with the name of the first part, used if no context has it.
    pub(crate) input: Option<usize>,
    /// Empty for the innermost context itself.
    pub(crate) first: Box<str>,
    pub(crate) rest: Vec<Box<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Rem,
    Pow,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
}

impl BinaryOp {
    /// Returns whether the result is a boolean.
    pub(crate) const fn is_comparison(self) -> bool {
        use BinaryOp::{Eq, Ge, Gt, In, Le, Lt, Ne, NotIn};
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge | In | NotIn)
    }

    pub(crate) const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::FloorDiv => "//",
            Self::Rem => "%",
            Self::Pow => "**",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::In => "in",
            Self::NotIn => "not in",
        }
    }
}

impl Expr {
    pub(crate) fn new(kind: ExprKind, place: Place) -> Self {
        Self { kind, place }
    }
}

/// Two trees are equal if they render alike. Positions in the source, and what was learned from rendering, do not count.
impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        let Self { body, inputs, frame_size, stack, literal_bytes, plain_inputs, interpolations, notes, .. } = self;
        *body == other.body
            && *inputs == other.inputs
            && *plain_inputs == other.plain_inputs
            && (*frame_size, *stack, *literal_bytes) == (other.frame_size, other.stack, other.literal_bytes)
            && (*interpolations, *notes) == (other.interpolations, other.notes)
    }
}

impl PartialEq for Expr {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl PartialEq for Target {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Slot(slot), Self::Slot(other)) => slot == other,
            (Self::Attr(value, name), Self::Attr(other, other_name)) => value == other && name == other_name,
            (Self::Unpack(targets, _), Self::Unpack(others, _)) => targets == others,
            _ => false,
        }
    }
}
