-- Uses the language server as a user of Neovim does. Run by neovim.py, with the server and a folder in variables.

local server, folder = vim.env.TYMPAN, vim.env.WORKSPACE
local passed, failed = 0, 0

local function check(name, holds, found)
  if holds then
    passed = passed + 1
    print("ok    " .. name)
  else
    failed = failed + 1
    print("FAIL  " .. name .. "\n      found " .. vim.inspect(found))
  end
end

-- Opens a file with some text, and attaches the server to it.
local function open(name, lines)
  vim.fn.writefile(lines, folder .. "/" .. name)
  vim.cmd("edit " .. vim.fn.fnameescape(folder .. "/" .. name))
  local buffer = vim.api.nvim_get_current_buf()
  local client = vim.lsp.start_client({ name = "tympan", cmd = { server, "lsp" }, root_dir = folder })
  vim.lsp.buf_attach_client(buffer, client)
  vim.wait(20000, function()
    return vim.lsp.get_client_by_id(client) and vim.lsp.get_client_by_id(client).initialized
  end)
  return buffer, vim.lsp.get_client_by_id(client)
end

local function lines(buffer)
  return vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
end

-- Sends a request about the position of a text in the buffer.
local function request(client, buffer, method, text, params)
  for number, line in ipairs(lines(buffer)) do
    local at = line:find(text, 1, true)
    if at then
      params.position = { line = number - 1, character = vim.str_utfindex(line, at - 1 + #text) }
    end
  end
  params.textDocument = vim.lsp.util.make_text_document_params(buffer)
  local answer = client.request_sync(method, params, 20000, buffer)
  return answer and answer.result, answer and answer.err
end

local function messages(buffer)
  local found = {}
  for _, diagnostic in ipairs(vim.diagnostic.get(buffer)) do
    table.insert(found, diagnostic.message)
  end
  return found
end

local function has_diagnostic(buffer, text)
  for _, message in ipairs(messages(buffer)) do
    if message:find(text, 1, true) then
      return true
    end
  end
  return false
end

local buffer, client = open("support.prompty", {
  "---",
  "name: support",
  "descripton: Answers a customer",
  "inputs:",
  "  - {name: ticket, kind: string}",
  "---",
  "user:",
  "🎈 {{ticket}} {{ tiket }}",
})
local encoding = client.offset_encoding

vim.wait(20000, function() return has_diagnostic(buffer, "tiket") end)
check("diagnostics", has_diagnostic(buffer, "`tiket`") and has_diagnostic(buffer, "descripton"), messages(buffer))

-- Diagnostics follow the text, also while the template is broken.
vim.api.nvim_buf_set_lines(buffer, 7, 8, false, { "🎈 {{ticket}} {{ ticket" })
vim.wait(20000, function() return has_diagnostic(buffer, "yntax") end)
check("diagnostics while typing", has_diagnostic(buffer, "yntax") and not has_diagnostic(buffer, "`tiket`"), messages(buffer))
vim.api.nvim_buf_set_lines(buffer, 7, 8, false, { "🎈 {{ticket}} {{ ticket }}" })

local actions = request(client, buffer, "textDocument/codeAction", "descripton", {
  range = { start = { line = 2, character = 2 }, ["end"] = { line = 2, character = 2 } },
  context = { diagnostics = {} },
})
for _, action in ipairs(actions or {}) do
  if action.edit and action.title:find("description", 1, true) then
    vim.lsp.util.apply_workspace_edit(action.edit, encoding)
    break
  end
end
check("quick fix", lines(buffer)[3] == "description: Answers a customer", lines(buffer)[3])
vim.wait(20000, function() return #vim.diagnostic.get(buffer) == 0 end)
check("a fixed file has no diagnostics", #vim.diagnostic.get(buffer) == 0, messages(buffer))

local edit, problem = request(client, buffer, "textDocument/rename", "{{ ticket", { newName = "question" })
if edit then
  vim.lsp.util.apply_workspace_edit(edit, encoding)
end
check("rename", lines(buffer)[8] == "🎈 {{question}} {{ question }}" and lines(buffer)[5]:find("name: question", 1, true), lines(buffer))
edit, problem = request(client, buffer, "textDocument/rename", "{{ question", { newName = "no name" })
check("an invalid name is refused", not edit and problem ~= nil, edit)

if client.server_capabilities.documentFormattingProvider then
  vim.lsp.buf.formatting_sync({ tabSize = 2, insertSpaces = true }, 20000)
  check("format", lines(buffer)[8] == "🎈 {{ question }} {{ question }}", lines(buffer)[8])
end

vim.api.nvim_buf_set_lines(buffer, 7, 8, false, { "{{ question | upp }}" })
local completion = request(client, buffer, "textDocument/completion", "| upp", {})
local items = vim.lsp.util.extract_completion_items(completion or {})
local labels = vim.tbl_map(function(item) return item.label end, items)
check("completion", vim.tbl_contains(labels, "upper") and not vim.tbl_contains(labels, "question"), labels)

local hover = request(client, buffer, "textDocument/hover", "{{ quest", {})
check("hover", hover ~= nil and hover.contents.value:find("user message", 1, true) ~= nil, hover)

-- Findings about tests follow the unsaved text of the prompt in the other buffer.
vim.api.nvim_buf_set_lines(buffer, 7, 8, false, { "{{ question }}" })
local function write_tests(name)
  vim.fn.writefile({ "cases:", "  - name: asks", "    inputs: {" .. name .. ": Hi}", "    expect: [{messages: 1}]" },
    folder .. "/support.test.yaml")
end
write_tests("question")
vim.cmd("hide edit " .. vim.fn.fnameescape(folder .. "/support.test.yaml"))
local tests = vim.api.nvim_get_current_buf()
vim.lsp.buf_attach_client(tests, client.id)
local cases = request(client, tests, "textDocument/documentSymbol", "cases", {})
check("cases as symbols", cases and cases[1] and cases[1].name == "asks", cases)
local declared = request(client, tests, "textDocument/definition", "inputs: {ques", {})
check("definition in the prompt", declared and declared[1] and declared[1].uri:find("support.prompty", 1, true) ~= nil, declared)
local key = request(client, tests, "textDocument/hover", "expe", {})
check("hover on a key", key and key.contents.value:find("assertions", 1, true) ~= nil, key)
edit = request(client, tests, "textDocument/rename", "inputs: {ques", { newName = "ticket" })
if edit then
  vim.lsp.util.apply_workspace_edit(edit, encoding)
end
check("rename in both files", lines(buffer)[8] == "{{ ticket }}" and lines(tests)[3] == "    inputs: {ticket: Hi}", lines(tests))
vim.api.nvim_buf_set_lines(tests, 2, 3, false, { "    inputs: {tickte: Hi}" })
vim.wait(20000, function() return has_diagnostic(tests, "`tickte`") end)
check("diagnostics of tests", has_diagnostic(tests, "`tickte`"), messages(tests))
vim.api.nvim_buf_set_lines(tests, 2, 3, false, { "    inputs: {ticket: Hi}" })
vim.wait(20000, function() return #vim.diagnostic.get(tests) == 0 end)
vim.api.nvim_buf_set_lines(buffer, 4, 5, false, { "  - {name: letter, kind: string}" })
vim.api.nvim_buf_set_lines(buffer, 7, 8, false, { "{{ letter }}" })
vim.wait(20000, function() return has_diagnostic(tests, "`ticket`") end)
check("diagnostics of tests follow the prompt", has_diagnostic(tests, "no input `ticket`"), messages(tests))

client.stop()
local stopped = vim.wait(20000, function() return client.is_stopped() end)
check("shutdown", stopped, stopped)

print(passed .. " passed, " .. failed .. " failed")
vim.cmd(failed == 0 and "quitall!" or "cquit!")
