/** What the scenario asks of a library that has shard channels. */
interface ShardClient {
    void ssubscribe(String channel, Client.Listener listener) throws Exception;

    long spublish(String channel, String text);
}
