/**
 * Loaded into the measured core (NODE_OPTIONS=--import): notes how many bytes sockets are given in each millisecond, and
 * leaves the fullest 100 ms behind when the process ends. Handshakes and answers of proxies are smaller than any piece.
 */
import { writeFileSync } from "node:fs";
import { Socket } from "node:net";

const WINDOW_MS = 100;
const SMALLEST_BYTES = 400;
const bins = new Float64Array(120_000);
const { write } = Socket.prototype;

Socket.prototype.write = function (chunk, ...rest) {
  const at = Math.trunc(performance.now());
  if (chunk?.length >= SMALLEST_BYTES && at < bins.length) bins[at] += chunk.length;
  return write.call(this, chunk, ...rest);
};

process.on("exit", () => {
  let most = 0;
  let sum = 0;
  let total = 0;
  for (let at = 0; at < bins.length; at++) {
    total += bins[at];
    sum += bins[at] - (at >= WINDOW_MS ? bins[at - WINDOW_MS] : 0);
    most = Math.max(most, sum);
  }
  const path = process.env.WEIR_WRITE_PROBE;
  if (path !== undefined && total > 0) writeFileSync(path, JSON.stringify({ most, total }));
});
