/**
 * Messages for syntax faults: the library's sentences for people who know YAML by heart, in words for those who do not.
 * No part of the text is repeated, because it may be a secret.
 */
import type { YAMLError } from "yaml";

/** By what the library's sentence begins with. */
const WORDS: readonly (readonly [begins: string, words: string])[] = [
  ["Tabs are not allowed", "tabs are not allowed as indentation; use spaces"],
  [
    "Implicit keys need to be on a single line",
    'expected "key: value"; a colon is missing, or the space behind it',
  ],
  [
    "Implicit map keys need to be followed",
    'expected "key: value"; the colon is missing, or the space behind it',
  ],
  [
    "Nested mappings are not allowed",
    'expected one value; text with ": " in it must be in quotes, and a map begins on a line of its own',
  ],
  [
    "Unexpected scalar at node end",
    "more text behind a value that has ended; a text with quotes or a * at its beginning must be in quotes as a whole",
  ],
  ["Plain value cannot start with", "a text that begins with @, `, % or | must be in quotes"],
  ["Invalid escape sequence", "invalid escape sequence in double quotes; write \\\\ for a backslash"],
  ["Sequence item without - indicator", 'expected an item of the list: "- " in the column of the others'],
];

const LONGEST = 200;

/** In the library's own words where there are no better ones. */
export function wordsOf({ message }: YAMLError): string {
  const better = WORDS.find(([begins]) => message.startsWith(begins))?.[1];
  if (better !== undefined) return better;
  const [sentence = ""] = message.split(/: "|\n/, 1); // a piece of the text follows
  return sentence.slice(0, LONGEST);
}

/** Characters that look like others and mean nothing in YAML. */
const LOOKALIKES: readonly (readonly [character: string, hint: string])[] = [
  ["\uff1a", 'a full-width colon; write ":" and a space'],
  ["\uff0c", 'a full-width comma; write ","'],
  ["\u3000", "a full-width space; write a plain one"],
  ["\u00a0", "a no-break space; write a plain one"],
  ["\u200b", "an invisible space of no width; remove it"],
];

/** ` (there is a full-width colon …)` where the line is hard to read for that reason, or nothing. */
export function lookalikeHint(line: string): string {
  const found = LOOKALIKES.find(([character]) => line.includes(character));
  return found === undefined ? "" : ` (the line has ${found[1]})`;
}
