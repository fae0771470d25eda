/** JA3 and JA4 of a ClientHello, by their public descriptions; written apart from the code that makes hellos. */
import { createHash } from "node:crypto";

interface Parsed {
  readonly legacyVersion: number;
  readonly suites: readonly number[];
  readonly extensions: readonly (readonly [type: number, body: Buffer])[];
}

const isGrease = (value: number): boolean => (value & 0x0f0f) === 0x0a0a && value >> 8 === (value & 0xff);
const known = (values: readonly number[]): number[] => values.filter((value) => !isGrease(value));

function numbersFrom(body: Buffer, at: number): number[] {
  const numbers: number[] = [];
  for (let next = at; next + 1 < body.length; next += 2) numbers.push(body.readUInt16BE(next));
  return numbers;
}

/** A whole handshake message: TYPE(1) LENGTH(3) VERSION(2) RANDOM(32) SESSION(1+n) SUITES(2+n) COMPRESSION(1+n) EXTENSIONS(2+n). */
function parse(message: Buffer): Parsed {
  let at = 38 + 1 + message.readUInt8(38);
  const suitesSize = message.readUInt16BE(at);
  const suites = numbersFrom(message.subarray(at + 2, at + 2 + suitesSize), 0);
  at += 2 + suitesSize;
  at += 1 + message.readUInt8(at) + 2;
  const extensions: [number, Buffer][] = [];
  while (at < message.length) {
    const size = message.readUInt16BE(at + 2);
    extensions.push([message.readUInt16BE(at), message.subarray(at + 4, at + 4 + size)]);
    at += 4 + size;
  }
  return { legacyVersion: message.readUInt16BE(4), suites, extensions };
}

const bodyOf = ({ extensions }: Parsed, type: number): Buffer | undefined =>
  extensions.find(([one]) => one === type)?.[1];

export function ja3(message: Buffer): string {
  const hello = parse(message);
  const groups = bodyOf(hello, 10);
  const formats = bodyOf(hello, 11);
  const fields = [
    hello.legacyVersion,
    known(hello.suites).join("-"),
    known(hello.extensions.map(([type]) => type)).join("-"),
    groups === undefined ? "" : known(numbersFrom(groups, 2)).join("-"),
    formats === undefined ? "" : [...formats.subarray(1)].join("-"),
  ];
  return createHash("md5").update(fields.join(",")).digest("hex");
}

const VERSIONS: Readonly<Record<number, string>> = { 0x0304: "13", 0x0303: "12", 0x0302: "11", 0x0301: "10" };
const hex4 = (value: number): string => value.toString(16).padStart(4, "0");
const short = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 12);
const count = (values: readonly number[]): string => String(Math.min(values.length, 99)).padStart(2, "0");

/** Over TCP. */
export function ja4(message: Buffer): string {
  const hello = parse(message);
  const suites = known(hello.suites);
  const types = known(hello.extensions.map(([type]) => type));
  const versions = bodyOf(hello, 43);
  const version = Math.max(
    ...(versions === undefined ? [hello.legacyVersion] : known(numbersFrom(versions, 1))),
  );
  const protocols = bodyOf(hello, 16);
  const first = protocols?.subarray(3, 3 + protocols.readUInt8(2)).toString("latin1") ?? "00";
  const signatures = bodyOf(hello, 13);
  const name = types.includes(0) ? "d" : "i";
  const sorted = types
    .filter((type) => type !== 0 && type !== 16)
    .map(hex4)
    .sort();
  const signed = signatures === undefined ? "" : `_${numbersFrom(signatures, 2).map(hex4).join(",")}`;
  const head = `t${VERSIONS[version] ?? "00"}${name}${count(suites)}${count(types)}${first.at(0)}${first.at(-1)}`;
  return `${head}_${short(suites.map(hex4).sort().join(","))}_${short(sorted.join(",") + signed)}`;
}

/** What stays the same in every hello of one browser: numbers with GREASE as a word, lengths of what is random. */
export function shapeOf(message: Buffer): string[] {
  const { suites, extensions } = parse(message);
  const word = (value: number): string => (isGrease(value) ? "GREASE" : hex4(value));
  return [
    `suites ${suites.map(word).join(" ")}`,
    ...extensions.map(([type, body]) => `${word(type)} ${contentOf(type, body, word)}`),
  ];
}

function contentOf(type: number, body: Buffer, word: (value: number) => string): string {
  if (type === 0) return "name";
  if (type === 21) return body.every((byte) => byte === 0) ? "padding" : "padding that is not zero";
  if (type === 65037) return `ech ${body.subarray(0, 3).toString("hex")}`;
  if (type === 10 || type === 13 || type === 34) return numbersFrom(body, 2).map(word).join(" ");
  if (type === 43 || type === 27) return numbersFrom(body, 1).map(word).join(" ");
  if (type !== 51) return body.toString("hex");
  const shares: string[] = [];
  for (let at = 2; at < body.length; at += 4 + body.readUInt16BE(at + 2))
    shares.push(`${word(body.readUInt16BE(at))}:${body.readUInt16BE(at + 2)}`);
  return shares.join(" ");
}
