// The same types for CommonJS.

import tympan = require("tympan");

const prompt: tympan.Prompt = tympan.Prompt.fromYaml("{name: a, role: user, body: Hi}");
const messages: tympan.Message[] = new tympan.Runtime({ guard: true }).prepare(prompt);

export { messages };
