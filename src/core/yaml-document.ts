/** YAML text as a document of the library, with bounds that hold before the library builds anything of it. */
import {
  Composer,
  Lexer,
  Parser,
  YAMLParseError,
  type Document,
  type ParseOptions,
  type SchemaOptions,
} from "yaml";

/** Levels of lists and maps. */
export const DEEPEST = 64;
export const TOO_DEEP = `nested more than ${DEEPEST} levels deep`;
/** The stack of the library's parser holds the document and a scalar besides. */
const DEEPEST_STACK = DEEPEST + 2;
/** Signs and words: a rule line is six, so this is some 700,000 of them. At the bound the text is refused. */
const MOST_LEXEMES = 4_000_000;

/** What the library says of `"a"#b`, which other programs read as a comment, and so does it. */
const COMMENT_TOO_NEAR = "Comments must be separated";

/** The text is beyond a bound; `offset` is where. */
export class YamlBoundError extends Error {
  readonly offset: number;
  constructor(offset: number, message: string) {
    super(message);
    this.offset = offset;
  }
}

export type YamlOptions = Pick<SchemaOptions, "schema" | "resolveKnownTags"> &
  Pick<ParseOptions, "uniqueKeys" | "keepSourceTokens">;

/**
 * The first document of the text, with the faults of its syntax in `errors`, without places in their words. Linear in the
 * length of the text; throws `YamlBoundError`.
 */
export function parseYamlDocument(text: string, options: YamlOptions): Document.Parsed {
  const document = readDocument(text, options, new Lexer().lex(text));
  if (!document.errors.some(({ code }) => code === "BAD_INDENT")) return document;
  const free = readDocument(text, options, withoutFlowIndent(text));
  return free.errors.every(({ code }) => code === "MULTIPLE_DOCS") ? free : document;
}

function readDocument(text: string, options: YamlOptions, lexemes: Iterable<string>): Document.Parsed {
  const composer = new Composer({ ...options, prettyErrors: false, logLevel: "error" });
  const [first, second] = firstTwo(documentsOf(text, lexemes, composer));
  if (second !== undefined) {
    const [begin, end] = second.range;
    first.errors.push(new YAMLParseError([begin, end], "MULTIPLE_DOCS", "only the first document is read"));
  }
  first.errors = first.errors.filter(({ message }) => !message.startsWith(COMMENT_TOO_NEAR));
  return first;
}

function firstTwo(documents: Generator<Document.Parsed>): [Document.Parsed, Document.Parsed?] {
  const first = documents.next();
  if (first.done === true) throw new Error("the library made no document");
  const second = documents.next();
  return second.done === true ? [first.value] : [first.value, second.value];
}

function* documentsOf(
  text: string,
  lexemes: Iterable<string>,
  composer: Composer,
): Generator<Document.Parsed> {
  const parser = new Parser();
  let count = 0;
  for (const lexeme of lexemes) {
    if (++count > MOST_LEXEMES)
      throw new YamlBoundError(parser.offset, `larger than ${MOST_LEXEMES} signs and words`);
    for (const token of parser.next(lexeme)) yield* composer.next(token);
    if (parser.stack.length > DEEPEST_STACK)
      throw new YamlBoundError(parser.offset - lexeme.length, TOO_DEEP);
  }
  for (const token of parser.end()) yield* composer.next(token);
  yield* composer.end(true, text.length);
}

/**
 * Indentation means nothing inside `{}` and `[]` to the readers of other programs: profiles have lists whose items begin in
 * the first column or behind a tab. The lexer by itself ends a collection at such a line.
 */
function* withoutFlowIndent(text: string): Generator<string> {
  const lexer = new Lexer();
  let outside: number | null = null;
  for (const lexeme of lexer.lex(text)) {
    if (lexer["flowLevel"] > 0) {
      outside ??= lexer["indentNext"];
      lexer["indentNext"] = 0;
    } else if (outside !== null) {
      lexer["indentNext"] = outside;
      outside = null;
    }
    yield lexeme;
  }
}
