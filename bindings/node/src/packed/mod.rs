//! The fast path between Rust and JavaScript for the common case: plain data in, text messages out.
//!
//! JSON must be escaped, converted to UTF-8 and parsed again, and each of these takes longer than rendering. Here, all
//! strings cross as a single UTF-16 string, JavaScript's own encoding, together with a description of its structure.
//! See `../../ts/packed.cts`.

mod read;
mod write;

use bumpalo::Bump;
use napi::bindgen_prelude::{Float64ArraySlice, Uint16ArraySlice};
use napi::{Env, JsString};
use napi_derive::napi;
use tympan::template::input::{InputData, InputMap};

use self::read::Reader;
use self::write::Packed;
use crate::border::guarded;
use crate::host::here;
use crate::prompt::NativePrompt;
use crate::runtime::NativeRuntime;
use crate::show;

#[napi]
impl NativeRuntime {
    /// Renders a prompt and splits it into messages. Returns `None` if the inputs must be sent as JSON, because a
    /// string is not valid Unicode.
    #[napi]
    pub fn prepare_packed<'env>(
        &self,
        env: &'env Env,
        prompt: &NativePrompt,
        texts: Uint16ArraySlice<'_>,
        tape: Float64ArraySlice<'_>,
    ) -> napi::Result<Option<JsString<'env>>> {
        let prepare = || {
            let Some((texts, tape)) = read::unpack(&texts, &tape) else { return Ok(None) };
            let room = Bump::with_capacity(tape.len() * size_of::<InputData<'_>>());
            let inputs = Reader::new(&texts, tape, &room).inputs();
            let Some(inputs) = inputs.as_ref().and_then(InputMap::of) else { return Ok(None) };
            let messages = self.runtime.prepare_borrowed(&prompt.prompt, inputs)?;
            match write::packed(&messages, &texts.long()) {
                Some(packed) => Ok(Some(packed)),
                None => show::messages(messages).map(|json| Some(Packed::Json(json))),
            }
        };
        let packed = here(*env, || guarded(prepare))?;
        packed.map(|packed| packed.into_js(env)).transpose()
    }
}
