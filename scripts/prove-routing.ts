/**
 * `npm run prove:routing -- [CASES] [QUESTIONS] [SEED]`: made-up configurations and destinations (200 × 50) over TCP; ends
 * with 1 at the first where explain, the router and the wire do not agree.
 */
import { compareDecisions } from "../test/support/routing-differential.ts";

const [cases = 200, questions = 50, seed = 1] = process.argv.slice(2).map(Number);
const reached = await compareDecisions(cases, questions, seed);
console.log(`${cases * questions} decisions agree, ${reached} of them reached a node`);
