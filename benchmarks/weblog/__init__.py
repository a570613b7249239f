"""Web analytics: page views as a counter on many sites logs them, and the questions that its reports ask."""
