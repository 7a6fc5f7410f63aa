// Lets the policy in policy.onnx play, and draws it.

import * as ort from "./node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs";
import { CartPole, EDGE, MOST_STEPS, SECONDS_PER_STEP } from "./cartpole.js";

const said = document.getElementById("said");
const pen = document.getElementById("stage").getContext("2d");

ort.env.wasm.numThreads = 1; // more would need headers that this page's server does not send
ort.env.wasm.wasmPaths = new URL("node_modules/onnxruntime-web/dist/", document.baseURI).href;

async function play() {
  const policy = await ort.InferenceSession.create("policy.onnx");
  const cartPole = new CartPole();
  const scores = [];
  document.getElementById("push").onclick = () => { cartPole.turning += 0.5; };
  for (;;) {
    const state = new ort.Tensor("float32", cartPole.state, [1, 4]);
    const { action } = await policy.run({ state }, ["action"]);
    cartPole.step(Number(action.data[0]));
    draw(cartPole);
    if (cartPole.isOver) {
      scores.push(cartPole.steps);
      cartPole.restart();
    }
    const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
    said.textContent = `step ${cartPole.steps} of ${MOST_STEPS}`
      + (scores.length ? `; ${scores.length} episodes, mean return ${mean.toFixed(1)}` : "");
    await new Promise((done) => setTimeout(done, 1000 * SECONDS_PER_STEP));
  }
}

function draw(cartPole) {
  const { width, height } = pen.canvas;
  const scale = width / (2 * EDGE + 0.6), ground = height * 0.75;
  pen.clearRect(0, 0, width, height);
  line("#999", 2, [0, ground], [width, ground]);
  const x = width / 2 + cartPole.x * scale;
  pen.fillStyle = "#2b4c7e";
  pen.fillRect(x - 35, ground - 24, 70, 24);
  const foot = [x, ground - 24], length = 1.0 * scale;
  const top = [x + length * Math.sin(cartPole.angle), foot[1] - length * Math.cos(cartPole.angle)];
  line("#c0762e", 10, foot, top);
}

function line(color, width, from, to) {
  pen.strokeStyle = color;
  pen.lineWidth = width;
  pen.lineCap = "round";
  pen.beginPath();
  pen.moveTo(...from);
  pen.lineTo(...to);
  pen.stroke();
}

play().catch((error) => { said.textContent = `the policy cannot be played: ${error.message}`; });
