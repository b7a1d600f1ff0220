// The request that the playground shows, for a terminal and for a program. The picture stays a file of the reader's.

function address(choices) {
  return `${choices.tls ? "https" : "http"}://${location.hostname}:${choices.data_port}`;
}

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

export function curl(choices, { model, task, detail, file, type, prompt }) {
  const image = { url: "PICTURE", ...(detail ? { detail } : {}) };
  const content = [{ type: "text", text: prompt }, { type: "image_url", image_url: image }];
  const body = JSON.stringify({ model, messages: [{ role: "user", content }] });
  const [before, after] = body.split("PICTURE").map((part) => part.replaceAll("'", `'\\''`));
  const lines = [`{ printf %s '${before}data:${type};base64,'; base64 -w0 ${quoted(file)}; printf %s '${after}'; } |`,
    `curl ${quoted(`${address(choices)}/v1/chat/completions`)} -H 'Content-Type: application/json'`];
  if (choices.keys) lines[1] += ` -H "Authorization: Bearer $API_KEY"`;
  if (task) lines[1] += ` -H ${quoted(`x-vlmgw-task: ${task}`)}`;
  return `${lines.join(" \\\n")} --data-binary @-\n`;
}

export function python(choices, { model, task, detail, file, type, prompt }) {
  const text = (value) => JSON.stringify(value);
  const image = `{"url": f"data:${type};base64,{picture}"${detail ? `, "detail": ${text(detail)}` : ""}}`;
  return `import base64
import os
from pathlib import Path

from openai import OpenAI

client = OpenAI(base_url=${text(`${address(choices)}/v1`)}, api_key=os.environ.get("API_KEY", "none"))
picture = base64.b64encode(Path(${text(file)}).read_bytes()).decode()
answer = client.chat.completions.create(
    model=${text(model)},${task ? `\n    extra_headers={"x-vlmgw-task": ${text(task)}},` : ""}
    messages=[{"role": "user", "content": [
        {"type": "text", "text": ${text(prompt)}},
        {"type": "image_url", "image_url": ${image}},
    ]}],
)
print(answer.choices[0].message.content)
`;
}
