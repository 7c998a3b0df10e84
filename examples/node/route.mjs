// A Next.js route handler (`app/api/weather/route.js`). It also works anywhere else that maps a `Request` to a
// `Response`. It runs a turn and streams its events as server-sent events.

import { TympanError, load, turn } from "tympan";

const prompt = load(new URL("../weather/weather.prompty", import.meta.url));
const tools = {
  get_weather: async ({ city, unit }) => ({ city, sky: "clear", degrees: 21, unit }),
};

export async function POST(request) {
  const { city } = await request.json().catch(() => ({}));
  if (typeof city !== "string") return Response.json({ error: "expected a city" }, { status: 400 });

  // Stop the turn if the client has disconnected.
  const gone = new AbortController();
  const signal = AbortSignal.any([request.signal, gone.signal]);
  const isRead = () => !gone.signal.aborted;
  const body = new ReadableStream({
    async start(controller) {
      const send = (event, data) => {
        if (isRead()) controller.enqueue(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
      };
      try {
        await turn(prompt, { city }, { tools, signal, onEvent: ({ type, ...data }) => send(type, data) });
      } catch (error) {
        // The response has already started, so it is too late for an error status.
        send("failed", error instanceof TympanError ? { code: error.code, message: error.message } : {});
      }
      if (isRead()) controller.close();
    },
    cancel: () => gone.abort(),
  });
  return new Response(body.pipeThrough(new TextEncoderStream()), {
    headers: { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" },
  });
}
