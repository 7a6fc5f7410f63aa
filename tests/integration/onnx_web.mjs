// Acts by an ONNX file as the page in examples/browser does: node onnx_web.mjs FOLDER POLICY.
// FOLDER is where npm has installed the page's package.json. Each line of the input is a JSON object of
// tensors by name, each of them { type, dims, data }; each line of the output has those that are returned.

import { createInterface } from "node:readline";
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const [folder, file] = process.argv.slice(2);
const runtime = new URL("node_modules/onnxruntime-web/dist/", pathToFileURL(`${folder}/`));
const ort = await import(new URL("ort.wasm.bundle.min.mjs", runtime));
ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = runtime.href;

const policy = await ort.InferenceSession.create(await readFile(file));
const ARRAYS = { uint8: Uint8Array, bool: Uint8Array, float32: Float32Array };

for await (const line of createInterface({ input: process.stdin })) {
  const inputs = {};
  for (const [name, { type, dims, data }] of Object.entries(JSON.parse(line))) {
    inputs[name] = new ort.Tensor(type, ARRAYS[type].from(data), dims);
  }
  const outputs = {};
  for (const [name, { type, dims, data }] of Object.entries(await policy.run(inputs))) {
    outputs[name] = { type, dims: [...dims], data: Array.from(data, Number) };
  }
  console.log(JSON.stringify(outputs));
}
