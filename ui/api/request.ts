/** One request to the Controller. */
import { WordedError } from "#ui/words/words.ts";

/** An answer that is not 2xx; the message is the Controller's own. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  /** What of the request it is about; "": nothing in particular. */
  readonly field: string;
  constructor(status: number, message: string, field = "") {
    super(message);
    this.status = status;
    this.field = field;
  }
}

/** There was no answer, not a whole one, or one that is not the Controller's. */
export class UnreachableError extends WordedError {
  override readonly name = "UnreachableError";
  constructor(key: "gate.noAnswer" | "gate.notOurs" = "gate.noAnswer") {
    super((t) => t(key));
  }
}

/** A delay test of a whole group may take its time; nothing takes longer that does not say so. */
const TIMEOUT_MS = 60_000;

export type Method = "GET" | "PUT" | "PATCH" | "POST" | "DELETE";

/** A body that is a file, with headers of its own. */
export interface FileBody {
  readonly file: Blob;
  readonly headers: Readonly<Record<string, string>>;
}

const isFile = (body: unknown): body is FileBody =>
  typeof body === "object" && body !== null && "file" in body && body.file instanceof Blob;

/** Throws `ApiError` or `UnreachableError`. `secret`: "" sends none. `body`: a `FileBody`, or what becomes JSON. */
export async function request(
  method: Method,
  url: URL,
  secret: string,
  body?: unknown,
  timeoutMs = TIMEOUT_MS,
): Promise<Response> {
  const sent = isFile(body) ? body.file : body === undefined ? undefined : JSON.stringify(body);
  const response = await fetch(url, {
    method,
    headers: {
      ...(secret === "" ? {} : { authorization: `Bearer ${asciiBytes(secret)}` }),
      ...(isFile(body) ? body.headers : {}),
    },
    ...(sent === undefined ? {} : { body: sent }),
    cache: "no-store",
    credentials: "omit",
    signal: AbortSignal.timeout(timeoutMs),
  }).catch(() => null);
  if (response === null) throw new UnreachableError();
  if (response.ok) return response;
  throw await errorOf(response);
}

/** The JSON of an answer; null where it has none. Throws `UnreachableError` where it is cut off or none of ours. */
export async function jsonOf<T>(response: Response): Promise<T> {
  if (response.status === 204) return null as T;
  return response.json().catch(() => {
    throw new UnreachableError("gate.notOurs");
  });
}

async function errorOf(response: Response): Promise<ApiError> {
  const { status } = response;
  const text = await response.text().catch(() => "");
  try {
    const { message, details } = JSON.parse(text) as {
      message?: unknown;
      details?: readonly { readonly path: string }[];
    };
    if (typeof message === "string" && message !== "")
      return new ApiError(status, message, details?.[0]?.path);
  } catch {
    // not JSON: the text itself is the message
  }
  return new ApiError(status, text.trim().slice(0, 500) || `status ${status}`);
}

/** Header values are bytes to a browser: a secret outside ASCII goes as its UTF-8 bytes, one character each. */
function asciiBytes(text: string): string {
  return String.fromCharCode(...new TextEncoder().encode(text));
}
