package status

import "context"

type tokenKey struct{}

// WithToken returns a context with which questions to other members carry an admin token; "": none.
func WithToken(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, tokenKey{}, token)
}

func tokenOf(ctx context.Context) string {
	token, _ := ctx.Value(tokenKey{}).(string)
	return token
}
