/** `weir man`: the manual page, weir(1), in roff (man(7)). */
import { VERSION } from "#version.ts";
import type { Outline } from "./completion.ts";
import type { FlagOutline } from "./outline.ts";

export const MAN_USAGE = `usage: weir man   print the manual page

  weir man > /usr/local/share/man/man1/weir.1
  weir man | man -l -
`;

export function man(outline: Outline): number {
  process.stdout.write(manPage(outline));
  return 0;
}

/** A backslash is an escape, a dash may be drawn as another, and a line must not begin with a request. */
const roff = (text: string): string =>
  text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll(/^([.'])/gm, "\\&$1")
    .replaceAll(/\P{ASCII}/gu, (character) => `\\[u${hex(character)}]`);

const hex = (character: string): string =>
  (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");

export function manPage({ commands, flags }: Outline): string {
  const sections = commands.map(({ help }) => `.PP\n.nf\n${roff(help)}\n.fi`);
  const list = commands.map(
    ({ name, words, summary }) => `.TP\n.B ${roff(name)} ${roff(words)}\n${roff(summary)}`,
  );
  return `.TH WEIR 1 "" "weir ${roff(VERSION)}" "User Commands"
.SH NAME
weir \\- rule\\-based network proxy core
.SH SYNOPSIS
.B weir
.RI [ flags ]
.br
.B weir
.I COMMAND
\\&...
.SH DESCRIPTION
Without a command weir runs: it reads its configuration, opens listeners and the Controller, and sends each connection where the rules say. SIGHUP reads the configuration again; SIGTERM and SIGINT end it.
.SH FLAGS
${flags.map(flagLines).join("\n")}
.SH COMMANDS
${list.join("\n")}
.SH COMMANDS IN FULL
${sections.join("\n")}
.SH EXIT STATUS
0: it went well. 1: it did not, and standard error says why. 2: the words of the command line are wrong.
.SH SEE ALSO
The dashboard at http://127.0.0.1:9090/ui/, and docs/ beside the program.
`;
}

function flagLines({ names, value, help }: FlagOutline): string {
  return `.TP\n.B ${names.map(roff).join(", ")}${value === null ? "" : ` ${roff(value)}`}\n${roff(help)}`;
}
