// The same types for CommonJS.

import tympan = require("tympan");
import definition = require("tympan/definition");
import testing = require("tympan/testing");
import zod = require("zod");

const made: definition.PromptDefinition = { name: "a", role: "user", body: "Hi" };
const prompt: tympan.Prompt = tympan.Prompt.fromDefinition(made);
const messages: tympan.Message[] = new tympan.Runtime({ guard: true }).prepare(prompt);
const validator = zod.z.object({ name: zod.z.string() });
// @ts-expect-error: a name is a string
tympan.Prompt.fromYaml("", { validator }).render({ name: 7 });

const cases: testing.PromptCase[] = testing.loadCases("a.test.yaml");
testing.testPrompts("prompts", { allowPrograms: true });

export { cases, messages };
