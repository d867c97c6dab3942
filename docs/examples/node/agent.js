// An agent in JavaScript: node agent.js HOST:PORT SESSION AGENT [EPISODES]
// It goes forward and turns right now and then. PROTOS names the folder of the .proto files.
import { randomUUID } from "node:crypto";
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const [address, session, agent, episodes = "1000"] = process.argv.slice(2);
const definition = loader.loadSync("animalcat/v1/gateway.proto", {
  includeDirs: [process.env.PROTOS ?? "../../../protos"],
  keepCase: true,
  longs: String,
  enums: String,
  defaults: true,
  oneofs: true,
});
const { AgentGateway } = grpc.loadPackageDefinition(definition).animalcat.v1;
const stream = new AgentGateway(address, grpc.credentials.createInsecure()).Evaluate();

const FORWARD = 3;
const FORWARD_AND_RIGHT = 4;

function act(step, observation) {
  // docs/protocol.md says what else is observed; this agent looks at its health alone.
  const action = observation.health > 0 && step % 7 === 6 ? FORWARD_AND_RIGHT : FORWARD;
  stream.write({ action: { step, list: { actions: Buffer.from([action]) } } });
}

let played = 0;
stream.on("data", (frame) => {
  switch (frame.frame) {
    case "welcome":
      console.log(`playing ${frame.welcome.session}, ${frame.welcome.max_episodes} episodes at most`);
      break;
    case "episode_start": // `direct` is ignored here, so the service relays
      if (played >= Number(episodes)) {
        stream.write({ withdraw: {} }); // before anything was done, it is held against nobody
      } else {
        act(0, frame.episode_start.observation);
      }
      break;
    case "ask":
      act(frame.ask.step, frame.ask.observation);
      break;
    case "episode_end":
      played += 1;
      console.log(`episode ${frame.episode_end.episode}: ${frame.episode_end.step} decisions`);
      break;
    case "session_end":
      console.log(`${frame.session_end.state} after ${frame.session_end.episodes} episodes`);
      stream.end();
      break;
    case "error":
      console.error(`${frame.error.code}: ${frame.error.message}`);
      if (frame.error.fatal) process.exitCode = 1;
      break;
  }
});
stream.on("error", (error) => {
  console.error(error.details);
  process.exitCode = 1;
});
stream.write({ hello: { session, agent, instance: randomUUID(), protocol: 1 } });
