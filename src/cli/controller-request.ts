/** A request of a command to the running weir on this machine. */
import { request } from "#lib/node-http.ts";

export type ControllerPlace =
  | { readonly socketPath: string }
  | { readonly host: string; readonly port: number };
/** `secret`: what opens it, or stands for that. */
export type ControllerAddress = ControllerPlace & { readonly secret: string };

const TIMEOUT_MS = 30_000;
const MOST_ANSWER_BYTES = 256 * 1024 * 1024;

/** The answer's text. Rejects with the message of the answer where it is no success. */
export async function askController(
  address: ControllerAddress,
  method: string,
  path: string,
  body?: object,
): Promise<string> {
  return (await askForBytes(address, method, path, body)).toString();
}

/** The same where the answer is no text. */
export function askForBytes(
  { secret, ...where }: ControllerAddress,
  method: string,
  path: string,
  body?: object,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const headers = { authorization: `Bearer ${Buffer.from(secret).toString("latin1")}` };
  const asked = request({ ...where, method, path, headers, timeout: TIMEOUT_MS }, (response) => {
    const { statusCode = 0 } = response;
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      if ((bytes += chunk.length) > MOST_ANSWER_BYTES) response.destroy(new Error("the answer does not end"));
    });
    response.on("error", reject);
    response.on("end", () => {
      const answer = Buffer.concat(chunks);
      if (statusCode >= 200 && statusCode < 300) resolve(answer);
      else reject(new Error(`the running weir answers ${statusCode}: ${messageIn(answer.toString())}`));
    });
  });
  asked.on("timeout", () => asked.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
  asked.on("error", (error) => reject(new Error(`the running weir cannot be asked: ${error.message}`)));
  asked.end(body === undefined ? "" : JSON.stringify(body));
  return promise;
}

function messageIn(text: string): string {
  try {
    const { message }: { message?: unknown } = JSON.parse(text);
    if (typeof message === "string") return message;
  } catch {
    // no JSON: the text itself
  }
  return text.trim().slice(0, 200);
}
