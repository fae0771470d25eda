/** The first bytes of a stream inside its own HTTP request: base64url without padding (0-RTT). */

export const EARLY_DATA_HEADER = "sec-websocket-protocol";

export function encodeEarlyData(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64url");
}

/** Both alphabets, with or without padding. Null: this is no early data (a plain subprotocol name, an odd length). */
export function decodeEarlyData(text: string): Buffer | null {
  const body = text.replace(/={1,2}$/, "");
  if (body === "" || body.length % 4 === 1 || !/^[A-Za-z0-9+/_-]+$/.test(body)) return null;
  return Buffer.from(body, "base64url");
}
