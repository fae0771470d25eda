/**
 * A ClientHello byte by byte, each as what it is: two digits where the browser always says the same, else a letter for each half:
 * `GG` GREASE, `rr` random, `ss` session id, `nn` the name, `kk` a key, `ee` of an Encrypted ClientHello that is none. Written
 * apart from the code that makes hellos: once from the bytes, once from what a capture says of them.
 */
import type { Capture } from "./browser-hellos.ts";

const hex = (value: number, bytes: number): string => value.toString(16).padStart(bytes * 2, "0");
const isGrease = (digits: string): boolean => /^(.)a\1a$/.test(digits);
const sizeOf = (classes: string): number => classes.length / 2;
const vector = (lengthBytes: number, classes: string): string => hex(sizeOf(classes), lengthBytes) + classes;

/** The part in front of the extensions, then one part for each extension, in order. */
export function bytesByClass(message: Buffer): string[] {
  const digits = message.toString("hex");
  const suitesAt = 2 * (38 + 1 + message.readUInt8(38));
  const suitesEnd = suitesAt + 4 + 2 * Number.parseInt(digits.slice(suitesAt, suitesAt + 4), 16);
  const extensionsAt = suitesEnd + 2 + 2 * Number.parseInt(digits.slice(suitesEnd, suitesEnd + 2), 16) + 4;
  const head = [
    digits.slice(0, 12),
    "rr".repeat(32),
    digits.slice(76, 78),
    "ss".repeat((suitesAt - 78) / 2),
    digits.slice(suitesAt, suitesAt + 4),
    greased(digits.slice(suitesAt + 4, suitesEnd)),
    digits.slice(suitesEnd, extensionsAt),
  ];
  const parts = [head.join("")];
  for (let at = extensionsAt; at < digits.length;) {
    const size = 2 * Number.parseInt(digits.slice(at + 4, at + 8), 16);
    const [type, body] = [digits.slice(at, at + 4), digits.slice(at + 8, at + 8 + size)];
    parts.push(greased(type) + digits.slice(at + 4, at + 8) + bodyByClass(type, body));
    at += 8 + size;
  }
  return parts;
}

/** Numbers of two bytes. */
function greased(digits: string): string {
  return digits.replaceAll(/.{4}/g, (number) => (isGrease(number) ? "GGGG" : number));
}

function bodyByClass(type: string, body: string): string {
  if (type === "0000") return body.slice(0, 10) + "n".repeat(body.length - 10);
  if (type === "000a") return body.slice(0, 4) + greased(body.slice(4));
  if (type === "002b") return body.slice(0, 2) + greased(body.slice(2));
  if (type === "0033") return sharesByClass(body);
  if (type !== "fe0d") return body;
  // TYPE(1) KDF(2) AEAD(2) CONFIG(1) KEY(2+32) PAYLOAD(2+n)
  return `${body.slice(0, 10)}ee${body.slice(12, 16)}${"ee".repeat(32)}${body.slice(80, 84)}${"e".repeat(body.length - 84)}`;
}

function sharesByClass(body: string): string {
  let classes = body.slice(0, 4);
  for (let at = 4; at < body.length;) {
    const size = 2 * Number.parseInt(body.slice(at + 4, at + 8), 16);
    const [group, share] = [body.slice(at, at + 4), body.slice(at + 8, at + 8 + size)];
    classes += greased(group) + body.slice(at + 4, at + 8) + (isGrease(group) ? share : "k".repeat(size));
    at += 8 + size;
  }
  return classes;
}

/** What the capture's browser says to a host of that name. `aead`, `payloadBytes`: of its invented Encrypted ClientHello. */
export interface Variant {
  readonly name: string;
  readonly aead: number;
  readonly payloadBytes: number;
}

/** As `bytesByClass`; null stands for padding, which fills the message up to the capture's length. */
export function bytesOfCapture({ shape, messageBytes }: Capture, variant: Variant): string[] {
  const [suites = "", ...extensions] = shape;
  const listed = numbers(suites.replace(/^suites /, ""));
  const parts = extensions.map((line) => extensionOf(line, variant));
  const front = `0303${"rr".repeat(32)}20${"ss".repeat(32)}${vector(2, listed)}0100`;
  const without = 4 + sizeOf(front) + 2 + sizeOf(parts.join(""));
  const [bytes = 0] = messageBytes;
  const padded = parts.map((part) =>
    part === "0015" ? part + vector(2, "00".repeat(bytes - without - 2)) : part,
  );
  const body = front + hex(sizeOf(padded.join("")), 2);
  return [`01${hex(sizeOf(body + padded.join("")), 3)}${body}`, ...padded];
}

const numbers = (text: string): string => text.replaceAll("GREASE", "GGGG").replaceAll(" ", "");

function extensionOf(line: string, variant: Variant): string {
  const space = line.indexOf(" ");
  const [type, content] = [numbers(line.slice(0, space)), line.slice(space + 1)];
  return type === "0015" ? type : type + vector(2, contentOf(type, content, variant));
}

function contentOf(type: string, content: string, { name, aead, payloadBytes }: Variant): string {
  if (type === "0000") return vector(2, `00${vector(2, "nn".repeat(name.length))}`);
  if (["000a", "000d", "0022"].includes(type)) return vector(2, numbers(content));
  if (["002b", "001b"].includes(type)) return vector(1, numbers(content));
  if (type === "fe0d")
    return `000001${hex(aead, 2)}ee${vector(2, "ee".repeat(32))}${vector(2, "ee".repeat(payloadBytes))}`;
  if (type !== "0033") return content;
  const shares = content.split(" ").map((share) => {
    const [group = "", bytes = ""] = share.split(":");
    return numbers(group) + vector(2, group === "GREASE" ? "00" : "kk".repeat(Number(bytes)));
  });
  return vector(2, shares.join(""));
}
